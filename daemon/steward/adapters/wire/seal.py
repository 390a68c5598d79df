"""Seals: a MUNGE credential over a frame's digest, bound to this connection, its direction and its place in the order.

A frame taken from another connection, reflected, replayed, reordered or changed does not open. Heartbeats, which come
far more often, are sealed the same way by a key that the head made for the connection.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from steward.adapters.offload import Threads
from steward.model.text import shown
from steward.ports import MungePort, Permanent

MUNGE_TIMEOUT_S = 2.0


class Role(Enum):
    AGENT = "agent"
    HEAD = "head"

    @property
    def other(self) -> "Role":
        return Role.HEAD if self is Role.AGENT else Role.AGENT


def digest(frame: Mapping[str, Any], role: Role, *nonces: str) -> bytes:
    """The digest that the credential carries: of the frame without its "cred", who sent it, and the connection's
    nonces. Raises Permanent for a frame that is nested too deeply: of whoever it is, it is no Steward's."""
    rest = {key: value for key, value in frame.items() if key != "cred"}
    try:
        text = json.dumps([role.value, *nonces, rest], sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise Permanent("a frame that is nested too deeply") from None
    return hashlib.sha256(text.encode()).digest()


class Sealer:
    """Makes and reads credentials without blocking the loop; believes only the users in `trusted`."""

    def __init__(self, munge: MungePort, trusted: frozenset[int], threads: Threads) -> None:
        self._munge = munge
        self._trusted = trusted
        self._threads = threads

    async def credential(self, payload: bytes, reader: int | None = None) -> str:
        """Only `reader` can read it, where one is given. Raises Retryable when munged does not answer."""
        return await self._threads.call(
            lambda: self._munge.encode(payload, reader), name="munge encode", timeout_s=MUNGE_TIMEOUT_S
        )

    async def verify(self, credential: object, payload: bytes) -> int:
        """The trusted user who made `credential` over `payload`. Raises Permanent when none did; Retryable without
        munged."""
        if not isinstance(credential, str):
            raise Permanent("a frame without a credential")
        uid, carried = await self.carried(credential)
        if carried != payload:
            raise Permanent("a credential that was made for something else")
        return uid

    async def verify_more(self, credential: object, payload: bytes) -> bytes:
        """What a trusted user put into `credential` behind `payload`: nothing, or a key. Raises as `verify` does."""
        if not isinstance(credential, str):
            raise Permanent("a frame without a credential")
        _, carried = await self.carried(credential)
        if not carried.startswith(payload):
            raise Permanent("a credential that was made for something else")
        return carried[len(payload) :]

    async def carried(self, credential: str) -> tuple[int, bytes]:
        """A trusted user, and what he put into it. Raises as `verify` does."""
        uid, carried = await self._threads.call(
            lambda: self._munge.decode(credential), name="munge decode", timeout_s=MUNGE_TIMEOUT_S
        )
        if uid not in self._trusted:
            raise Permanent(f"a credential of uid {uid}; only {sorted(self._trusted)} may speak here")
        return uid, carried


class Beats:
    """The seals of one connection's heartbeats, over the times that they carry (as `times` writes them); none without a
    key (a peer before this version)."""

    def __init__(self, key: bytes, role: Role) -> None:
        self._has_key = bool(key)
        self._own, self._peers = (_keyed(key, which) for which in (role, role.other))
        self._sent = 0
        self._received = 0

    def seal(self, text: bytes) -> str:
        """The seal of the next message that is sent."""
        self._sent += 1
        return _of(self._own, self._sent, text) if self._has_key else ""

    def check(self, seal: object, text: bytes) -> None:
        """Raises Permanent when it is not that of the peer's next one."""
        self._received += 1
        if not self._has_key:
            return
        right = _of(self._peers, self._received, text)
        if not (isinstance(seal, str) and seal.isascii() and hmac.compare_digest(seal, right)):
            raise Permanent("a heartbeat without its seal")


def times(*given: float) -> bytes:
    """The numbers as JSON writes them."""
    return ",".join(map(repr, given)).encode()


def _keyed(key: bytes, role: Role) -> "hashlib.blake2b":
    return hashlib.blake2b(key=key, person=role.value.encode(), digest_size=16)


def _of(keyed: "hashlib.blake2b", number: int, text: bytes) -> str:
    """A copy of the keyed state is half the work."""
    state = keyed.copy()
    state.update(b"%d %s" % (number, text))
    return state.hexdigest()


class Seals:
    """The seals of one connection: both nonces, and a sequence number for each direction."""

    def __init__(self, sealer: Sealer, role: Role, *, head_nonce: str, agent_nonce: str, key: bytes = b"") -> None:
        self._sealer = sealer
        self._role = role
        self.beats = Beats(key, role)
        self._nonces = (head_nonce, agent_nonce)
        self._sent = 0
        self._received = 0

    async def seal(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The frame with "seq" and "cred". Raises Retryable without munged; the number is then not spent."""
        numbered = {**frame, "seq": self._sent + 1}
        credential = await self._sealer.credential(digest(numbered, self._role, *self._nonces))
        self._sent += 1
        return {**numbered, "cred": credential}

    async def open(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The frame without its seal. Raises Permanent when it is not the next one of this connection's peer."""
        if frame.get("seq") != self._received + 1:
            raise Permanent(f"frame {shown(frame.get('seq'))} came where {self._received + 1} was due")
        await self._sealer.verify(frame.get("cred"), digest(frame, self._role.other, *self._nonces))
        self._received += 1
        return {key: value for key, value in frame.items() if key not in ("seq", "cred")}
