"""Two names for two folders, exchanged in one step where the system can do that."""

import ctypes
import errno
import os
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def exchange(one: Path, other: Path) -> bool:
    """Whether the two names were exchanged; not so where the system or the file system has no such step."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code))
