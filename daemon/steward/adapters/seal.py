"""Seals: a MUNGE credential over a frame's digest, bound to this connection, its direction and its place in the order.

A frame taken from another connection, reflected, replayed, reordered or changed does not open.
"""

import hashlib
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
    """What the credential carries: the frame without its "cred", who sent it, and the connection's nonces. Raises
    Permanent for a frame that is nested too deeply: of whoever it is, it is no Steward's."""
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

    async def credential(self, payload: bytes) -> str:
        """Raises Retryable when munged does not answer."""
        return await self._threads.call(
            lambda: self._munge.encode(payload), name="munge encode", timeout_s=MUNGE_TIMEOUT_S
        )

    async def verify(self, credential: object, payload: bytes) -> None:
        """Raises Permanent unless a trusted user made `credential` over `payload`; Retryable without munged."""
        if not isinstance(credential, str):
            raise Permanent("a frame without a credential")
        uid, carried = await self._threads.call(
            lambda: self._munge.decode(credential), name="munge decode", timeout_s=MUNGE_TIMEOUT_S
        )
        if uid not in self._trusted:
            raise Permanent(f"a credential of uid {uid}; only {sorted(self._trusted)} may speak here")
        if carried != payload:
            raise Permanent("a credential that was made for something else")


class Seals:
    """The seals of one connection: both nonces, and a sequence number for each direction."""

    def __init__(self, sealer: Sealer, role: Role, *, head_nonce: str, agent_nonce: str) -> None:
        self._sealer = sealer
        self._role = role
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
