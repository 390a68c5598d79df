"""Seals: a MUNGE credential over a frame's digest, bound to this connection, its direction and its sequence number.

A frame from another connection, or one that was reflected, replayed, reordered or changed, is refused. Heartbeats,
which come far more often, are sealed with a key that the head made for the connection.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from steward.adapters.offload import Threads
from steward.model.text import repr_line
from steward.ports import MungePort, Permanent, WrongClock

MUNGE_TIMEOUT_S = 2.0


class PeerRole(Enum):
    """A side of a connection."""

    AGENT = "agent"
    HEAD = "head"

    @property
    def other(self) -> "PeerRole":
        return PeerRole.HEAD if self is PeerRole.AGENT else PeerRole.AGENT


def digest(frame: Mapping[str, Any], role: PeerRole, *nonces: str) -> bytes:
    """Return the digest for the credential: of the frame without its "cred", its sender's role, and the nonces.

    Raises Permanent for a frame that is nested too deeply, which no Steward sends.
    """
    rest = {key: value for key, value in frame.items() if key != "cred"}
    try:
        text = json.dumps([role.value, *nonces, rest], sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise Permanent("a frame is nested too deeply") from None
    return hashlib.sha256(text.encode()).digest()


class Sealer:
    """A maker and reader of credentials that does not block the loop, and accepts only the users in `trusted`."""

    def __init__(self, munge: MungePort, trusted: frozenset[int], threads: Threads) -> None:
        self._munge = munge
        self._trusted = trusted
        self._threads = threads

    async def credential(self, payload: bytes, reader: int | None = None) -> str:
        """Return a credential, which only `reader` can read if one is given. Raises Retryable without munged."""
        return await self._threads.call(
            lambda: self._munge.encode(payload, reader), name="munge encode", timeout_s=MUNGE_TIMEOUT_S
        )

    async def verify(self, credential: object, payload: bytes) -> int:
        """Return the trusted user who made `credential` over `payload`.

        Raises WrongClock if only its maker's clock is wrong, Permanent for any other bad or missing credential,
        Retryable without munged.
        """
        if not isinstance(credential, str):
            raise Permanent("a frame has no credential")
        try:
            uid, carried = await self.carried(credential)
        except WrongClock as error:
            if error.uid not in self._trusted or error.payload != payload:
                raise Permanent(str(error)) from None
            raise
        if carried != payload:
            raise Permanent("a credential was made for another frame")
        return uid

    async def verify_more(self, credential: object, payload: bytes) -> bytes:
        """Return the bytes behind `payload` in a trusted user's `credential`: a key, or nothing. Raises as `verify`."""
        if not isinstance(credential, str):
            raise Permanent("a frame has no credential")
        _, carried = await self.carried(credential)
        if not carried.startswith(payload):
            raise Permanent("a credential was made for another frame")
        return carried[len(payload) :]

    async def carried(self, credential: str) -> tuple[int, bytes]:
        """Return the trusted user who made the credential, and its payload. Raises as `verify` does."""
        uid, carried = await self._threads.call(
            lambda: self._munge.decode(credential), name="munge decode", timeout_s=MUNGE_TIMEOUT_S
        )
        if uid not in self._trusted:
            raise Permanent(f"a credential of uid {uid} was refused; only uids {sorted(self._trusted)} are accepted")
        return uid, carried


class Beats:
    """The seals of one connection's heartbeats, over the times that they carry (as `times` writes them)."""

    def __init__(self, key: bytes, role: PeerRole) -> None:
        self._own, self._peers = (_keyed(key, which) for which in (role, role.other))
        self._sent = 0
        self._received = 0

    def seal(self, text: bytes) -> str:
        """Return the seal of the next heartbeat to send."""
        self._sent += 1
        return _seal_of(self._own, self._sent, text)

    def check(self, seal: object, text: bytes) -> None:
        """Check the seal of the peer's next heartbeat. Raises Permanent if it is wrong."""
        self._received += 1
        right = _seal_of(self._peers, self._received, text)
        if not (isinstance(seal, str) and seal.isascii() and hmac.compare_digest(seal, right)):
            raise Permanent("a heartbeat has no seal, or a wrong one")


def times(*given: float) -> bytes:
    """Return the numbers as JSON writes them."""
    return ",".join(map(repr, given)).encode()


def _keyed(key: bytes, role: PeerRole) -> "hashlib.blake2b":
    return hashlib.blake2b(key=key, person=role.value.encode(), digest_size=16)


def _seal_of(keyed: "hashlib.blake2b", number: int, text: bytes) -> str:
    """Return the seal of heartbeat `number`."""
    # Copying the keyed state halves the work.
    state = keyed.copy()
    state.update(b"%d %s" % (number, text))
    return state.hexdigest()


class Seals:
    """The seals of one connection: both nonces, and a sequence number for each direction."""

    def __init__(self, sealer: Sealer, role: PeerRole, *, head_nonce: str, agent_nonce: str, key: bytes) -> None:
        self._sealer = sealer
        self._role = role
        self.beats = Beats(key, role)
        self._nonces = (head_nonce, agent_nonce)
        self._sent = 0
        self._received = 0

    async def seal(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Return the frame with "seq" and "cred". Raises Retryable without munged; the number is then not used up."""
        numbered = {**frame, "seq": self._sent + 1}
        credential = await self._sealer.credential(digest(numbered, self._role, *self._nonces))
        self._sent += 1
        return {**numbered, "cred": credential}

    async def open(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Return the frame without its seal. Raises Permanent if it is not the peer's next one on this connection."""
        if frame.get("seq") != self._received + 1:
            raise Permanent(f"frame {repr_line(frame.get('seq'))} came where frame {self._received + 1} was due")
        await self._sealer.verify(frame.get("cred"), digest(frame, self._role.other, *self._nonces))
        self._received += 1
        return {key: value for key, value in frame.items() if key not in ("seq", "cred")}
