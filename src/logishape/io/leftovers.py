"""Hidden names for what is not finished yet, and the removal of what a killed run left under such names."""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import socket
from pathlib import Path

_LONGEST = 120  # bytes of the name itself; most systems allow 255 bytes in all


def hidden_name(target: Path, is_older: bool = False) -> Path:
    """A new hidden name in the same folder with the same suffix, which some writers go by.

    It says on which machine and by which process it was made, and whether it is what stood at the target before.
    """
    kind = "old" if is_older else "new"
    return target.with_name(f".logishape-{kind}-{_machine()}-{os.getpid()}-{secrets.token_hex(6)}-{_end(target)}")


def sweep(target: Path) -> None:
    """Removes what dead processes of this machine left beside a target.

    What stood there before and has lost its name comes back, should nothing stand there now.
    """
    with contextlib.suppress(OSError):
        for path in list(target.parent.iterdir()):
            found = re.fullmatch(r"\.logishape-(new|old)-([0-9a-f]{8})-(\d+)-[0-9a-f]{12}-(.+)", path.name, re.DOTALL)
            if found is None or (found[2], found[4]) != (_machine(), _end(target)) or _is_alive(int(found[3])):
                continue
            if found[1] == "old" and not os.path.lexists(target):
                os.rename(path, target)
            else:
                remove(path)


def remove(path: Path) -> None:
    """Takes a file or a folder away, as far as that is possible; a link is taken away, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _end(target: Path) -> str:
    """The last part of a name, short enough to stand behind ours."""
    return os.fsencode(target.name)[-_LONGEST:].decode("utf-8", "ignore")


def _machine() -> str:
    """A word for the machine, or the container, whose process numbers ours is one of."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:8]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it is there and belongs to somebody else, or cannot be told
    return True
