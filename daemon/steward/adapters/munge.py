"""MUNGE credentials through libmunge: they prove a caller's uid with the cluster's key."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steward.model.port_error import Permanent, Retryable, WrongClock
from steward.model.text import cause

if TYPE_CHECKING:
    from steward.ports import MungePort

_LIBRARY = "libmunge.so.2"
_OPTION_ENCODED, _OPTION_DECODED = 6, 7
"""The times at which a credential was made and read, each by the clock of the machine that did it."""
_OPTION_SOCKET = 8
_OPTION_READER = 9
_RETRYABLE = frozenset({1, 5, 6, 7})
"""Internal error, out of memory, socket error, timeout: faults of munged, not of the credential."""
_CLOCKS = "the clocks of the two machines differ, or it came very late"
_WRONG_CLOCK = frozenset({15, 16})
"""The codes of a credential that has expired or is from the future, and is valid otherwise."""
_HINTS = {
    14: "made with another MUNGE key: /etc/munge/munge.key must be the same on both machines",
    15: _CLOCKS,
    16: _CLOCKS,
}
"""Hints for credentials that are invalid, expired or from the future."""


class Munge:
    """The munged at a socket path ("" is the library's default).

    Calls block up to some seconds while munged is away: call them in a thread. Every call has its own context, so
    threads may share one object.
    """

    def __init__(self, socket: str = "") -> None:
        """Load libmunge. Raises Permanent if it is not installed."""
        self._socket = socket.encode()
        self._lib, self._quick = _load()
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]
        self._free.restype = None

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        """Return a credential of this process's uid for `payload`. Raises Retryable if munged does not answer."""
        credential = ctypes.c_void_p()
        with self._context() as context:
            if reader is not None:
                code = self._quick.munge_ctx_set(context, ctypes.c_int(_OPTION_READER), ctypes.c_uint32(reader))
                self._check(code, context, "name the reader")
            code = self._lib.munge_encode(ctypes.byref(credential), context, payload, len(payload))
            self._check(code, context, "encode")
        try:
            return ctypes.string_at(credential).decode("ascii")
        finally:
            self._free(credential)

    def decode(self, credential: str) -> tuple[int, bytes]:
        """Return the maker's uid and the payload.

        Raises WrongClock if the credential is expired or from the future, Permanent if it is forged or replayed,
        Retryable if munged does not answer.
        """
        try:
            sent = credential.encode("ascii")
        except UnicodeEncodeError:
            raise Permanent("munge decode: the credential is not ASCII text") from None
        data, length, uid = ctypes.c_void_p(), ctypes.c_int(0), ctypes.c_uint32(0)
        out = ctypes.byref
        with self._context() as context:
            try:
                code = self._lib.munge_decode(sent, context, out(data), out(length), out(uid), None)
                payload = ctypes.string_at(data, length.value) if data else b""
                if code in _WRONG_CLOCK:
                    behind_s = self._time(context, _OPTION_DECODED) - self._time(context, _OPTION_ENCODED)
                    text = self._error(code, context, "decode")
                    raise WrongClock(text, uid=uid.value, payload=payload, behind_s=behind_s)
                self._check(code, context, "decode")
                return uid.value, payload
            finally:
                self._free(data)  # an expired or replayed credential leaves its payload behind, too

    @contextmanager
    def _context(self) -> Iterator[ctypes.c_void_p]:
        context = ctypes.c_void_p(self._quick.munge_ctx_create())
        if not context:
            raise Retryable("munge: out of memory")
        try:
            if self._socket:
                code = self._quick.munge_ctx_set(context, ctypes.c_int(_OPTION_SOCKET), ctypes.c_char_p(self._socket))
                self._check(code, context, "set the socket")
            yield context
        finally:
            self._quick.munge_ctx_destroy(context)

    def _check(self, code: int, context: ctypes.c_void_p, what: str) -> None:
        if code == 0:
            return
        text = self._error(code, context, what)
        if code in _RETRYABLE:
            raise Retryable(f"{text} (is munged running?)")
        raise Permanent(text)

    def _error(self, code: int, context: ctypes.c_void_p, what: str) -> str:
        """Return the words for an error code."""
        detail = self._quick.munge_ctx_strerror(context) or self._quick.munge_strerror(code) or b"unknown error"
        hint = f" ({_HINTS[code]})" if code in _HINTS else ""
        said = detail.decode("ascii", "replace").removesuffix(" (Did you start munged?)")
        return f"munge {what}: {said}{hint}"

    def _time(self, context: ctypes.c_void_p, option: int) -> float:
        """Return a time of the credential that was read last (Unix s)."""
        at = ctypes.c_long()
        self._check(self._quick.munge_ctx_get(context, ctypes.c_int(option), ctypes.byref(at)), context, "read a time")
        return float(at.value)


class ToldMunge:
    """A MungePort that reports, in the caller's thread, each time that munged did not answer."""

    def __init__(self, munge: "MungePort", no_answer: Callable[[str], None]) -> None:
        self._munge = munge
        self._no_answer = no_answer

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        """Return the credential of the wrapped port."""
        with self._telling():
            return self._munge.encode(payload, reader)

    def decode(self, credential: str) -> tuple[int, bytes]:
        """Return the uid and payload from the wrapped port."""
        with self._telling():
            return self._munge.decode(credential)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Retryable as error:
            self._no_answer(str(error))
            raise


def _load() -> tuple[Any, Any]:
    """Return the library twice: for calls that wait for munged, and for calls that do not."""
    try:
        # Calls through PyDLL keep the interpreter lock: to release it costs a millisecond while other threads compute.
        lib, quick = ctypes.CDLL(_LIBRARY), ctypes.PyDLL(_LIBRARY)
    except OSError as error:
        raise Permanent(f"{_LIBRARY} cannot be loaded ({cause(error)}): install libmunge2 (or munge-libs)") from None
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    quick.munge_ctx_create.restype = pointer
    quick.munge_ctx_destroy.argtypes = [pointer]
    quick.munge_ctx_destroy.restype = None
    quick.munge_ctx_strerror.argtypes = [pointer]
    quick.munge_ctx_strerror.restype = text
    quick.munge_strerror.argtypes = [number]
    quick.munge_strerror.restype = text
    lib.munge_encode.argtypes = [pointer, pointer, text, number]
    lib.munge_decode.argtypes = [text, pointer, pointer, pointer, pointer, pointer]
    return lib, quick
