"""The requests over HTTP that other heads pass to this one: from where, how many at once, and to which pages."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from starlette.types import ASGIApp

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Channel
from steward.head.arrival import ArrivalRefused, PeerAddress
from steward.head.follow import answer_passed
from steward.head.origin import Resolve, resolve
from steward.model.setting_types import AddressRule, split_host_port
from steward.ports import PortError, Retryable

log = logging.getLogger(__name__)

_AT_ONCE = 128
_LOOK_UP_S = 2.0
_KNOWN_S = 30.0


class PassedRequests:
    """The door of other heads to this head's pages. For the loop's thread only."""

    def __init__(
        self, heads: Sequence[str] = (), rule: AddressRule = AddressRule.AUTO, resolve: Resolve = resolve
    ) -> None:
        """Take the addresses in `agent.head`, from whose hosts requests may come."""
        self._hosts = tuple(split_host_port(head)[0] for head in heads)
        self._rule, self._resolve, self._threads = rule, resolve, Threads(2)
        self._known: tuple[frozenset[str], float] = (frozenset(), 0.0)
        self._now = 0
        self.doors: Mapping[str, ASGIApp] = {}
        """The applications, by the names of their doors (`head.follow`)."""

    async def admit(self, place: PeerAddress) -> None:
        """Raise ArrivalRefused if the address is not that of a head's host."""
        # A node has the MUNGE key, too: without this a compromised one could read the pages of this host's users.
        if self._rule is AddressRule.OFF or place.is_here or place.address in await self._addresses():
            return
        said = ", ".join(self._hosts)
        raise ArrivalRefused(f"it passes a request on as a head, but is at no address of agent.head ({said})")

    async def is_other_heads(self, place: PeerAddress) -> bool:
        """Return whether the address is another head's host; False if there is none, or addresses do not count."""
        if self._rule is AddressRule.OFF or place.is_here or len(self._hosts) < 2:
            return False
        return place.address in await self._addresses()

    async def serve(self, channel: Channel) -> None:
        """Answer one request."""
        if self._now >= _AT_ONCE:
            log.warning("more than %d passed requests at once: one is refused", _AT_ONCE)
            return
        self._now += 1
        try:
            await answer_passed(channel, self.doors.get)
        except PortError as error:
            log.info("a passed request was not answered: %s", error)
        except Exception:
            log.exception("a passed request failed")
        finally:
            self._now -= 1
            channel.close()

    async def _addresses(self) -> frozenset[str]:
        """Return the addresses of all heads' hosts, as this host resolves their names."""
        if time.monotonic() >= self._known[1]:
            found = await asyncio.gather(*map(self._look_up, self._hosts))
            self._known = (frozenset().union(*found), time.monotonic() + _KNOWN_S)
        return self._known[0]

    async def _look_up(self, host: str) -> frozenset[str]:
        try:
            return await self._threads.call(lambda: self._resolve(host), name="resolve", timeout_s=_LOOK_UP_S)
        except (OSError, UnicodeError, Retryable):
            return frozenset()
