"""HTTP connections on which no request comes are ended: they count towards the most that the server takes."""

from collections.abc import Iterable
from typing import Any


class IdleConnections:
    """A connection that stands as it stood at the look before, without a request under way, is ended. `protocols` are
    uvicorn's: each has `cycle`, its last request if any. A request that is sent in drops is none until it is whole."""

    def __init__(self) -> None:
        self._before: dict[Any, Any] = {}

    def look(self, protocols: Iterable[Any]) -> None:
        idle = {one: one.cycle for one in protocols if one.cycle is None or one.cycle.response_complete}
        for protocol, last in idle.items():
            if protocol in self._before and self._before[protocol] is last:
                protocol.transport.abort()
        self._before = idle
