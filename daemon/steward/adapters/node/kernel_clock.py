"""The kernel's own word on its clock."""

import ctypes
import os

_SIZE = 512
"""More than any struct timex has; all zero it asks for nothing but the state."""
_UNSYNCHRONISED = 5  # TIME_ERROR


def is_synchronised() -> bool:
    """False when no time daemon has set the clock for so long that it may be seconds off. Raises OSError."""
    state = int(ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_SIZE)))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"adjtimex: {os.strerror(number)}")
    return state != _UNSYNCHRONISED
