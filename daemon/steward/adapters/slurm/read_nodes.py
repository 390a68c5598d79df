"""Read nodes through steward-slurm, or else as text. An unchanged node is the same object again."""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from steward.adapters.process import show
from steward.adapters.slurm import narrow, records, text_nodes
from steward.adapters.slurm.commands import SlurmCommands
from steward.adapters.slurm.library import MOST, NOTHING, Library
from steward.adapters.slurm.record_form import Garbled, RecordLines
from steward.adapters.slurm.words import is_node, node_lists
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase
from steward.ports import Retryable

log = logging.getLogger(__name__)

_SHOW = ("scontrol", "--all", "--oneliner", "show", "node")
_IN_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_NO_NODES = "No nodes in the system"
"""slurmctld's words if all nodes are dynamic and none has registered: only then is an empty list believed."""


_TRUST_S = 60.0
"""How long Slurm's "nothing changed" is believed: it rests on slurmctld's clock, which may be set."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last whole look through the library, and its time (monotonic)."""

    stamp: str
    nodes: Mapping[NodeName, Node]
    at: float


class NodeReader:
    """A reader of nodes, which remembers its last look. Safe to call from several threads."""

    def __init__(self, commands: SlurmCommands, library: Library | None = None) -> None:
        self._commands, self._library = commands, library
        self._last: _Last | None = None
        self._known: dict[NodeName, tuple[str, Node]] = {}
        """Each node as last read, with its text."""
        self._usual_port = ""

    def whole(self) -> Mapping[NodeName, Node]:
        """Return all nodes."""
        found = self._all_by_library()
        if found is None:
            found = self._all_by_text()
        for name in list(self._known):
            if name not in found:
                self._known.pop(name, None)
        return found

    def some(self, only: Collection[NodeName]) -> Mapping[NodeName, Node]:
        """Return these nodes, without unknown ones."""
        names = sorted(name for name in set(only) if is_node(name))
        if self._library is not None and names:
            found = (
                narrow.of_nodes(self.whole(), names) if len(names) > MOST else self._nodes_of(self._library.node(names))
            )
            if found is not None:
                return found
        found = {}
        for each in node_lists(names):
            read = self._read(self._commands.some_nodes(*_SHOW, each, env=_IN_SECONDS))
            found.update(narrow.of_nodes(read, names))
        return found

    def _all_by_library(self) -> Mapping[NodeName, Node] | None:
        """Read every node through the library; the same mapping if nothing changed. Return None to ask the commands."""
        if self._library is None:
            return None
        last, now = self._last, time.monotonic()
        if last is not None and now > last.at + _TRUST_S:
            last = None
        told = self._library.nodes(last.stamp if last else NOTHING)
        if told is not None and told.lines is None and last is not None:
            return last.nodes
        found = self._nodes_of(told)
        self._last = _Last(told.stamp, found, now) if told and found else None
        return found or None

    def _nodes_of(self, told: RecordLines | None) -> dict[NodeName, Node] | None:
        """Return the nodes of an answer; None if there is none, or one node is unreadable."""
        if told is None or told.lines is None:
            return None
        found: dict[NodeName, Node] = {}
        try:
            for line in told.lines:
                name = NodeName(line.partition("\t")[0])
                known = self._known.get(name)
                found[name] = known[1] if known is not None and known[0] == line else self._keep(line)
        except Garbled as error:
            log.warning("steward-slurm's answer is not believed: %s", error)
            return None
        return found

    def _keep(self, line: str) -> Node:
        """Return the node of a record, as the object of the last look if it is equal. Raises Garbled."""
        node = records.node_of(line)
        known = self._known.get(node.name)
        kept = known[1] if known is not None and known[1] == node else node
        self._known[node.name] = (line, kept)
        return kept

    def _all_by_text(self) -> Mapping[NodeName, Node]:
        """Read every node as text."""
        try:
            answer = self._commands.look(*_SHOW, env=_IN_SECONDS)
        except Retryable:
            self._usual_port = ""  # slurmctld may restart with another configuration
            raise
        found = self._read(answer)
        if not found and _NO_NODES not in answer:
            raise Retryable("Slurm's answer has no node in it: not believed")
        return found

    def _read(self, answer: str) -> dict[NodeName, Node]:
        """Return the nodes of a text answer. Raises Retryable."""
        found: dict[NodeName, Node] = {}
        for name, line in text_nodes.lines(answer):
            if name in found:
                raise Retryable(f"Slurm's answer has node {show(name)} twice: not believed")
            found[name] = self._node_of_line(name, line)
        if not found and answer.strip() and _NO_NODES not in answer:
            raise Retryable(f"Slurm's answer has no node in it: not believed: {show(answer[:200])}")
        return found

    def _node_of_line(self, name: NodeName, line: str) -> Node:
        """Return the node of a line; one with unreadable text is UNKNOWN, so that nothing is done to it."""
        known = self._known.get(name)
        try:
            key = text_nodes.key(line, self._port())
            if known is not None and known[0] == key:
                return known[1]
            node = text_nodes.node(key)
        except text_nodes.Odd:
            log.warning("cannot read what Slurm tells of a node: %s", show(line))
            return replace(known[1] if known else Node(name=name, base=NodeBase.UNKNOWN), base=NodeBase.UNKNOWN)
        kept = known[1] if known is not None and known[1] == node else node
        self._known[name] = (key, kept)
        return kept

    def _port(self) -> str:
        """Return the usual port of slurmd."""
        port = self._usual_port  # another thread may reset it at any time
        if not port:
            port = self._usual_port = text_nodes.usual_port(self._commands.read("scontrol", "show", "config"))
        return port
