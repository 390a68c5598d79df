"""Nodes, read as text and by JSON where the text is odd. A node that reads as it did is the same object again."""

from collections.abc import Collection, Iterator, Mapping

from steward.adapters.slurm import narrow, records, text_nodes
from steward.adapters.slurm.commands import Commands
from steward.adapters.slurm.single import MOST, Single
from steward.adapters.slurm.words import is_node, node_lists
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.ports import Retryable

_SHOW = ("scontrol", "--all", "--oneliner", "show", "node")
_IN_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_NO_NODES = "No nodes in the system"
"""slurmctld's words where every node is to register by itself and none has: only then is an empty list a real
answer."""


class NodeReader:
    """Safe to call from several threads."""

    def __init__(self, commands: Commands, single: Single | None = None) -> None:
        """`single` reads a few of them more quickly."""
        self._commands, self._single = commands, single
        self._parts: object | None = None
        """The partitions at a whole look since which no node was seen in others. While they are the same, so are those
        of each known node."""
        self._known: dict[NodeName, tuple[str, Node]] = {}
        """Each node as last read, and the text that it was read from."""
        self._odd: dict[str, Node] = {}
        """The same of nodes of which the text is odd."""
        self._usual_port = ""

    def whole(self) -> Mapping[NodeName, Node]:
        told = None
        if self._parts is None and self._single is not None:
            told = self._single.nodes((), self._commands.version())
        try:
            answer = self._commands.look(*_SHOW, env=_IN_SECONDS)
        except Retryable:
            self._parts, self._usual_port = None, ""  # slurmctld may begin anew with another configuration
            raise
        read = self._read(answer) if answer.startswith("NodeName=") else None
        found = self._by_json() if read is None else read
        if not found and _NO_NODES not in answer:
            raise Retryable("Slurm's answer has no node in it: not believed")
        for name in list(self._known):
            if name not in found:
                self._parts = None
                self._known.pop(name, None)
        if read is None:
            self._parts = None
        elif told is not None:
            self._parts = told.parts
        return found

    def some(self, only: Collection[NodeName]) -> Mapping[NodeName, Node]:
        found = self._singly(sorted(set(only)))
        if found is not None:
            return found
        found = {}
        for names in node_lists(name for name in only if is_node(name)):
            read = self._read(self._commands.some_nodes(*_SHOW, names, env=_IN_SECONDS))
            found.update(narrow.of_nodes(self._by_json() if read is None else read, only))
        return found

    def _singly(self, only: list[NodeName]) -> dict[NodeName, Node] | None:
        """The nodes as the library reads them one by one; None where the commands must be used."""
        parts = self._parts
        if self._single is None or parts is None or not only or len(only) > MOST:
            return None
        known = {name: self._known.get(name) for name in only}
        told = self._single.nodes(only, self._commands.version()) if all(known.values()) else None
        if told is None or parts is not self._parts:
            return None
        if told.parts != parts:
            self._parts = None  # the next whole look asks anew
            return None
        found = {name: self._with_known(told.lines[name], before) for name, before in known.items() if before}
        return {name: node for name, node in found.items() if node} if all(found.values()) else None

    def _with_known(self, line: str, known: tuple[str, Node]) -> Node | None:
        """A node whose line tells no partitions; None: it is odd."""
        try:
            key = text_nodes.with_partitions_of(self._key(line), known[0])
            if key == known[0]:
                return known[1]
            node = text_nodes.node(key)
        except text_nodes.Odd:
            return None
        self._known[node.name] = (key, node)
        return node

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
            if known is None or not text_nodes.has_partitions_of(key, known[0]):
                self._parts = None  # before another thread may see what moved
            self._known[name] = (key, node := text_nodes.node(key))
            return node
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
