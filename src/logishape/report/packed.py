"""Arrays as text that a page can hold: their bytes sorted by place, compressed, in base64."""

import base64
import zlib
from typing import Any

import numpy as np

_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "float32")


def pack(values: np.ndarray) -> dict[str, Any]:
    """An array's type, shape and content; `unpack` of `arrays.js` reads it.

    First bytes of all numbers come first, then the second ones: those of neighbours are alike and compress well.
    """
    if values.dtype.name not in _TYPES:
        raise TypeError(f"the page reads {', '.join(_TYPES)} but not {values.dtype.name}")
    plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    sorted_bytes = plain.view("u1").reshape(-1, plain.itemsize).T.tobytes()
    text = base64.b64encode(zlib.compress(sorted_bytes, 9)).decode("ascii")
    return {"type": values.dtype.name, "shape": list(values.shape), "data": text}
