"""JSON objects, one a line, between the ranks of one deep check; and the proof that a peer belongs to it."""

import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import Mapping
from typing import Any

MAX_LINE = 65536
Message = Mapping[str, Any]


class NoPeer(Exception):
    """The other end is gone, too slow, or none of ours."""


def packed(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def unpacked(line: bytes) -> dict[str, Any]:
    """Raises NoPeer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise NoPeer("it answers in an unknown protocol") from None
    if not isinstance(message, dict):
        raise NoPeer("it answers in an unknown protocol")
    return message


def nonce() -> str:
    return secrets.token_hex(16)


def proof(key: str, *words: str) -> str:
    """Only who knows `key` can make it."""
    return hmac.new(key.encode(), "\0".join(words).encode(), hashlib.sha256).hexdigest()


def is_proof(said: object, key: str, *words: str) -> bool:
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(key, *words).encode())


class Lines:
    """Lines over a blocking socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._got = b""

    def send(self, message: Message) -> None:
        """Raises NoPeer."""
        try:
            self.sock.sendall(packed(message))
        except OSError as error:
            raise NoPeer(f"cannot send: {error.strerror or error}") from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Raises NoPeer."""
        self.sock.settimeout(max(timeout_s, 0.01))
        while b"\n" not in self._got:
            try:
                chunk = self.sock.recv(MAX_LINE)
            except OSError as error:
                raise NoPeer(f"no answer: {error.strerror or error}") from None
            if not chunk or len(self._got) > MAX_LINE:
                raise NoPeer("it hung up")
            self._got += chunk
        line, _, self._got = self._got.partition(b"\n")
        return unpacked(line)
