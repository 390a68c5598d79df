"""MUNGE credentials through libmunge: they prove a caller's uid with the cluster's key."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steward.model.port_error import Permanent, Retryable
from steward.model.text import cause

if TYPE_CHECKING:
    from steward.ports import MungePort

_LIBRARY = "libmunge.so.2"
_OPTION_SOCKET = 8
_OPTION_READER = 9
_RETRYABLE = frozenset({1, 5, 6, 7})
"""Internal error, out of memory, socket error, timeout: faults of munged, not of the credential."""
_CLOCKS = "the clocks of the two machines differ, or it came very late"
_HINTS = {
    14: "made with another MUNGE key: /etc/munge/munge.key must be the same on both machines",
    15: _CLOCKS,
    16: _CLOCKS,
}
"""Hints for credentials that are invalid, expired or from the future."""


class Munge:
    """A munged, by its socket path ("" is the library's default).

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

        Raises Permanent if the credential is forged, replayed or expired, Retryable if munged does not answer.
        """
        try:
            text = credential.encode("ascii")
        except UnicodeEncodeError:
            raise Permanent("munge decode: the credential is not ASCII text") from None
        data, length, uid = ctypes.c_void_p(), ctypes.c_int(0), ctypes.c_uint32(0)
        out = ctypes.byref
        with self._context() as context:
            try:
                code = self._lib.munge_decode(text, context, out(data), out(length), out(uid), None)
                self._check(code, context, "decode")
                return uid.value, ctypes.string_at(data, length.value) if data else b""
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
        detail = self._quick.munge_ctx_strerror(context) or self._quick.munge_strerror(code) or b"unknown error"
        text = f"munge {what}: {detail.decode('ascii', 'replace')}"
        if code in _RETRYABLE:
            raise Retryable(f"{text} (is munged running?)")
        hint = _HINTS.get(code)
        raise Permanent(f"{text} ({hint})" if hint else text)


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
