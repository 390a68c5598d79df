"""Nodes, read as text and by JSON where the text is odd. A node that reads as it did is the same object again."""

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from steward.adapters.slurm import narrow, records, text_nodes
from steward.adapters.slurm.commands import Commands
from steward.adapters.slurm.library import MOST, NOTHING, Library
from steward.adapters.slurm.record_form import Garbled, Told
from steward.adapters.slurm.words import is_node, node_lists
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.ports import Retryable

log = logging.getLogger(__name__)

_SHOW = ("scontrol", "--all", "--oneliner", "show", "node")
_IN_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_NO_NODES = "No nodes in the system"
"""slurmctld's words where every node is to register by itself and none has: only then is an empty list a real
answer."""


_TRUST_S = 60.0
"""For so long Slurm is believed that nothing changed: it says so by its clock, which may be set."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last whole look through the library, and when it was (monotonic)."""

    stamp: str
    nodes: Mapping[NodeName, Node]
    at: float


class NodeReader:
    """Safe to call from several threads."""

    def __init__(self, commands: Commands, library: Library | None = None) -> None:
        self._commands, self._library = commands, library
        self._last: _Last | None = None
        self._known: dict[NodeName, tuple[str, Node]] = {}
        """Each node as last read, and the text that it was read from."""
        self._odd: dict[str, Node] = {}
        """The same of nodes of which the text is odd."""
        self._usual_port = ""

    def whole(self) -> Mapping[NodeName, Node]:
        found = self._all_told()
        if found is None:
            found = self._all_by_text()
        for name in list(self._known):
            if name not in found:
                self._known.pop(name, None)
        return found

    def some(self, only: Collection[NodeName]) -> Mapping[NodeName, Node]:
        names = sorted(name for name in set(only) if is_node(name))
        if self._library is not None and names:
            found = narrow.of_nodes(self.whole(), names) if len(names) > MOST else self._told(self._library.node(names))
            if found is not None:
                return found
        found = {}
        for each in node_lists(names):
            read = self._read(self._commands.some_nodes(*_SHOW, each, env=_IN_SECONDS))
            found.update(narrow.of_nodes(self._by_json() if read is None else read, only))
        return found

    def _all_told(self) -> Mapping[NodeName, Node] | None:
        """Every node through the library, the same mapping where nothing changed; None: ask the commands."""
        if self._library is None:
            return None
        last, now = self._last, time.monotonic()
        if last is not None and now > last.at + _TRUST_S:
            last = None
        told = self._library.nodes(last.stamp if last else NOTHING)
        if told is not None and told.lines is None and last is not None:
            return last.nodes
        found = self._told(told)
        self._last = _Last(told.stamp, found, now) if told and found else None
        return found or None

    def _told(self, told: Told | None) -> dict[NodeName, Node] | None:
        """The nodes of an answer; None where there is none, or one cannot be read."""
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
        """A node's record; the object that was told before, where nothing of it changed. Raises Garbled."""
        node = records.node_of(line)
        known = self._known.get(node.name)
        kept = known[1] if known is not None and known[1] == node else node
        self._known[node.name] = (line, kept)
        return kept

    def _all_by_text(self) -> Mapping[NodeName, Node]:
        try:
            answer = self._commands.look(*_SHOW, env=_IN_SECONDS)
        except Retryable:
            self._usual_port = ""  # slurmctld may begin anew with another configuration
            raise
        read = self._read(answer) if answer.startswith("NodeName=") else None
        found = self._by_json() if read is None else read
        if not found and _NO_NODES not in answer:
            raise Retryable("Slurm's answer has no node in it: not believed")
        return found

    def _read(self, answer: str) -> dict[NodeName, Node] | None:
        """The nodes of a text answer; None where a line cannot be read, so that JSON must be used."""
        found: dict[NodeName, Node] = {}
        for line in _lines(answer):
            node = self._one(line)
            if node is None or node.name in found:
                return None
            found[node.name] = node
        return found

    def _key(self, line: str) -> str:
        port = self._usual_port  # another thread may forget it any time
        if not port:
            port = self._usual_port = text_nodes.usual_port(self._commands.read("scontrol", "show", "config"))
        return text_nodes.key(line, port)

    def _one(self, line: str) -> Node | None:
        try:
            key = self._key(line)
            name = text_nodes.name_of(key)
            known = self._known.get(name)
            if known is not None and known[0] == key:
                return known[1]
            node = text_nodes.node(key)
            kept = known[1] if known is not None and known[1] == node else node
            self._known[name] = (key, kept)
            return kept
        except text_nodes.Odd:
            self._known.pop(_name(line), None)
            return self._odd.get(text_nodes.odd_key(line))

    def _by_json(self) -> Mapping[NodeName, Node]:
        """Every node, and what text tells of those at which it is odd."""
        before = self._commands.look(*_SHOW, env=_IN_SECONDS)
        found = records.nodes(self._commands.look(*self._commands.version().read_nodes))
        after = _told_oddly(self._commands.look(*_SHOW, env=_IN_SECONDS), found)
        same = _told_oddly(before, found).keys() & after.keys()
        self._odd = {line: after[line] for line in same}
        return found


def _told_oddly(answer: str, found: Mapping[NodeName, Node]) -> dict[str, Node]:
    """By the text; nothing where it and JSON do not tell of the same nodes."""
    lines = list(_lines(answer))
    names = [_name(line) for line in lines]
    if sorted(names) != sorted(found):
        return {}
    return {text_nodes.odd_key(line): found[name] for name, line in zip(names, lines, strict=True) if _is_odd(line)}


def _name(line: str) -> NodeName:
    return NodeName(line.partition(" ")[0].removeprefix("NodeName="))


def _is_odd(line: str) -> bool:
    try:
        text_nodes.node(text_nodes.key(line, "0"))
    except text_nodes.Odd:
        return True
    return False


def _lines(answer: str) -> Iterator[str]:
    """The lines of an answer, one after the other: megabytes are not split at once."""
    at = 0
    while (end := answer.find("\n", at)) >= 0:
        if end > at:
            yield answer[at:end]
        at = end + 1
