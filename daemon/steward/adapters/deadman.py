"""A timer of the kernel that ends this process, even one that is stopped.

A head that was stopped (SIGSTOP, a debugger, a machine that was suspended) and is woken would go on in the middle of an
act, minutes after another head took the lead. Python cannot check anything between its check and its system call; the
kernel can end the process while it is stopped.
"""

import ctypes
import logging
import signal
import time

log = logging.getLogger(__name__)

_ABSOLUTE = 1
_BY_SIGNAL = 0
_NANO = 1_000_000_000


class _Event(ctypes.Structure):
    """`struct sigevent`, which is 64 bytes long."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = (("interval", _Time), ("value", _Time))


class Deadman:
    """The timer. Where the C library or the kernel has none, `set` does nothing, and the log says so once."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _Event(signal=signal.SIGKILL, notify=_BY_SIGNAL)
        # glibc before 2.34 has these functions in librt
        if not hasattr(self._library, "timer_create"):
            self._library = ctypes.CDLL("librt.so.1", use_errno=True)
        made = self._library.timer_create(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._timer))
        self._is_there = made == 0
        if not self._is_there:
            log.warning("no timer can end this head while it is stopped (error %d)", ctypes.get_errno())

    def set(self, at: float | None) -> None:
        """End this process at that time of CLOCK_BOOTTIME, in place of the time before; None: at no time."""
        if not self._is_there:
            return
        # A time of zero would disarm the timer.
        nano = 0 if at is None else max(int(at * _NANO), 1)
        value = _Timer(value=_Time(seconds=nano // _NANO, nanoseconds=nano % _NANO))
        self._library.timer_settime(self._timer, _ABSOLUTE, ctypes.byref(value), None)
