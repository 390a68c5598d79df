"""Compare the addresses of agents' connections with those that Slurm and the provider know for the nodes.

Only names that Slurm knows are resolved, never one that an agent alone gave. An unknown address alone counts against no
agent.
"""

import asyncio
import ipaddress
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from steward.adapters.offload import Threads
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance
from steward.model.node import Node
from steward.ports import Retryable

_LOOK_UP_S = 2.0
_AT_ONCE, _LATER_AT_ONCE = 8, 4
"""How many names are looked up at once, and how many of these may be names that no agent waits for."""
_KNOWN_S = 300.0
_UNKNOWN_S = 30.0
_INDEX_S = 1.0
_TEXTS_KEPT = 1 << 15
"""Parsed addresses that are cached: parsing took a tenth of the time of an agent's arrival."""

Resolve = Callable[[str], frozenset[str]]
"""Returns the addresses of a host's name; may block. Raises OSError if it has none."""


class Origin(Enum):
    """The origin of a connection."""

    OWN = "own"
    """An address of the node, or of the head's own host, where root controls the head anyway."""
    UNKNOWN = "unknown"
    """No address of the node is known."""
    STRANGE = "strange"
    """Not an address of the node, nor of another one: a second network, or a lie."""
    ANOTHERS = "another's"
    """The address of another node in service, and not of this one."""


def resolve(name: str) -> frozenset[str]:
    """Return the addresses of a name, as this host resolves it."""
    return frozenset(plain(str(found[4][0])) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))


@lru_cache(_TEXTS_KEPT)
def plain(address: str) -> str:
    """Return an IP address in its usual form, without zone, and IPv4 as IPv4; other text unchanged."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(getattr(ip, "ipv4_mapped", None) or ip)


class Origins:
    """The known addresses of nodes. Any thread may call `learn`; all else is for the loop's thread."""

    def __init__(self, resolve: Resolve = resolve) -> None:
        self._resolve = resolve
        self._threads = Threads(_AT_ONCE)
        self._nodes: Mapping[NodeName, Node] = MappingProxyType({})
        self._instances: Mapping[InstanceId, Instance] = MappingProxyType({})
        self._machines: Mapping[NodeName, list[Instance]] = MappingProxyType({})
        self._found: dict[str, tuple[frozenset[str], float]] = {}
        """Addresses by name, and until when they are valid (monotonic)."""
        self._later: dict[str, None] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._owners: Mapping[str, set[NodeName]] = MappingProxyType({})
        self._owners_at = float("-inf")

    def learn(self, nodes: Mapping[NodeName, Node], instances: Mapping[InstanceId, Instance]) -> None:
        """Take the nodes and instances that Slurm and the provider showed last."""
        if instances is not self._instances:
            machines: defaultdict[NodeName, list[Instance]] = defaultdict(list)
            for instance in instances.values():
                machines[instance.node].append(instance)
            self._machines, self._instances = dict(machines), instances
        self._nodes = nodes

    async def look_up(self, node: NodeName) -> None:
        """Look up the node's names within a few seconds; a name without an answer stays unknown."""
        await asyncio.gather(*(self._look_up(name) for name in self._stale(node)))

    def look_up_later(self, node: NodeName) -> None:
        """Look up the node's names in the background, a few at a time."""
        self._later.update(dict.fromkeys(self._stale(node)))
        while len(self._asking) < min(_LATER_AT_ONCE, len(self._later)):
            asking = asyncio.get_running_loop().create_task(self._ask_later())
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)

    def of(self, node: NodeName, address: str, *, here: bool) -> Origin:
        """Return the origin of a connection that speaks as `node`; `here`: it comes from this host."""
        known = self._addresses(node)
        if here or address in known:
            return Origin.OWN
        if self.other_owner(node, address) is not None:
            return Origin.ANOTHERS
        return Origin.STRANGE if known else Origin.UNKNOWN

    def is_at_home(self, node: NodeName, address: str) -> bool:
        """Return whether the address is known to be the node's, without looking up a name."""
        return address in self._addresses(node)

    def other_owner(self, node: NodeName, address: str) -> NodeName | None:
        """Return another node, in service, that has the address; None if there is none."""
        return min((other for other in self._owners_of(address) if other != node and self._serves(other)), default=None)

    def is_new_machine(self, node: NodeName, instance: InstanceId, than: InstanceId) -> bool:
        """Return whether the provider says that `instance` is the node's machine, and replaced the instance `than`."""
        machine, old = self._instances.get(instance), self._instances.get(than)
        if instance == than or machine is None or machine.node != node or machine.state.is_dead:
            return False
        return old is None or old.state.is_dead or old.launched < machine.launched

    def _stale(self, node: NodeName) -> list[str]:
        """Return the node's names whose addresses are unknown or too old."""
        return [name for name in self._names(node) if self._is_stale(name)]

    def _is_stale(self, name: str) -> bool:
        """Return whether the name's addresses are unknown or too old."""
        return self._found.get(name, (None, 0.0))[1] <= time.monotonic()

    async def _ask_later(self) -> None:
        """Look up the waiting names, one after the other."""
        while self._later:
            name = next(iter(self._later))
            del self._later[name]
            if self._is_stale(name):
                await self._look_up(name)

    async def _look_up(self, name: str) -> None:
        """Look up one name."""
        try:
            found = await self._threads.call(lambda: self._resolve(name), name="resolve", timeout_s=_LOOK_UP_S)
        except (OSError, UnicodeError, Retryable):
            found = frozenset()
        self._found[name] = (found, time.monotonic() + (_KNOWN_S if found else _UNKNOWN_S))

    def _names(self, node: NodeName) -> list[str]:
        """Return the node's host names; none if Slurm does not know the node."""
        known = self._nodes.get(node)
        said = {known.address or node, known.extra.get("hostname", ""), node} if known is not None else set()
        return [name for name in said if name and not _is_ip(name)]

    def _addresses(self, node: NodeName) -> frozenset[str]:
        """Return the known addresses of the node."""
        known = self._nodes.get(node)
        slurms = {known.address} if known is not None and _is_ip(known.address) else set()
        providers = {one.address for one in self._machines.get(node, ()) if one.address and not one.state.is_dead}
        resolved = (self._found[name][0] for name in self._names(node) if name in self._found)
        return frozenset(map(plain, slurms | providers)).union(*resolved)

    def _owners_of(self, address: str) -> set[NodeName]:
        """Return the nodes that have the address."""
        now = time.monotonic()
        if now >= self._owners_at + _INDEX_S:
            owners: defaultdict[str, set[NodeName]] = defaultdict(set)
            for node in self._nodes:
                for each in self._addresses(node):
                    owners[each].add(node)
            self._owners, self._owners_at = dict(owners), now
        return self._owners.get(address, set())

    def _serves(self, node: NodeName) -> bool:
        """Return whether the node is in service: the address of another node may belong to a new machine by now."""
        known = self._nodes.get(node)
        return known is not None and known.is_powered and known.responding and not known.is_down


@lru_cache(_TEXTS_KEPT)
def _is_ip(text: str) -> bool:
    """Return whether the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
