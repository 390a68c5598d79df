"""Each peer's share of the HTTP connections: one who holds them all keeps nobody else out."""

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from steward.adapters.socket_owner import owner_of

MAX_CONNECTIONS = 256
SHARE = 64


class SharedHttp(H11Protocol):
    """uvicorn's connection; one beyond its peer's share is hung up on. Those of this machine are told apart by their
    uid (where that is not known, not at all), others by their address."""

    peer: object = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.peer = _peer_of(transport)
        others = (one.peer for one in self.connections if isinstance(one, SharedHttp))
        if self.peer is not None and sum(peer == self.peer for peer in others) > SHARE:
            transport.abort()


def _peer_of(transport: Any) -> object:
    theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    if not theirs or not ours:  # it has gone away already
        return None
    owner = owner_of(theirs[:2], ours[:2])
    return theirs[0] if owner is None and theirs[0] != ours[0] else owner
