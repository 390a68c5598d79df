"""The grammar of our include file. slurmctld dies of an unknown node or of a partition that is there twice, and with
one wrong word in the file no Slurm command works any more: nothing else than this grammar ever gets into it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from steward.adapters.process import show
from steward.adapters.slurm.words import expand
from steward.model.ids import NodeName
from steward.model.partition import is_reserved
from steward.ports import Permanent, Retryable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,1023}")
_STATES = ("UP", "DOWN")
_ALWAYS = {"MaxTime": "INFINITE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLines:
    """The meaning of the file's text. `states` is partition -> UP or DOWN, `sets` node set -> (feature, nodes)."""

    sets: dict[str, tuple[str, frozenset[NodeName]]]
    members: dict[str, tuple[str, ...]]
    """Partition -> the node sets that it has."""
    states: dict[str, str]

    @property
    def nodes(self) -> frozenset[NodeName]:
        """Every node that is named: slurmctld must know it."""
        return frozenset(node for _, nodes in self.sets.values() for node in nodes)

    def is_like(self, other: "PartitionLines") -> bool:
        """Equal but for the states."""
        return replace(self, states={}) == replace(other, states={}) and self.states.keys() == other.states.keys()


def parse(text: str) -> PartitionLines:
    """Raises Permanent, naming the line, for anything that Steward would not write."""
    lines = PartitionLines(sets={}, members={}, states={})
    for number, line in _lines(text):
        try:
            _take(lines, [word.partition("=")[::2] for word in line.split()])
        except (ValueError, KeyError, Retryable) as error:
            raise Permanent(
                f"line {number} of the partitions is not ours to write: {error} in {show(line)!r}"
            ) from error
    return lines


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _take(lines: PartitionLines, pairs: list[tuple[str, str]]) -> None:
    words = dict(pairs)
    if len(words) != len(pairs):
        raise ValueError("a word that is there twice")
    if "NodeSet" in words:
        _take_set(lines, words)
    else:
        _take_partition(lines, words)


def _take_set(lines: PartitionLines, words: dict[str, str]) -> None:
    name = _new(words.pop("NodeSet"), lines.sets)
    feature, nodes = words.pop("Feature", ""), expand(words.pop("Nodes", ""))
    if words or not (feature or nodes):
        raise ValueError(f"more than Feature and Nodes, or none of them: {sorted(words)}")
    lines.sets[name] = (_name(feature) if feature else "", nodes)


def _take_partition(lines: PartitionLines, words: dict[str, str]) -> None:
    name = _new(words.pop("PartitionName"), lines.states)
    sets, state = tuple(words.pop("Nodes").split(",")) if "Nodes" in words else (), words.pop("State")
    if unknown := set(sets) - lines.sets.keys():
        raise ValueError(f"node sets that were not said before: {sorted(unknown)}")
    if state not in _STATES or words != _ALWAYS:
        raise ValueError("a state that is not UP or DOWN, or more or less than MaxTime=INFINITE")
    lines.members[name], lines.states[name] = sets, state


def _new(name: str, known: Mapping[str, object]) -> str:
    if name in known:
        raise ValueError(f"{name} is there twice")
    return _name(name)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name) or is_reserved(name):
        raise ValueError(f"no name: {name!r}")
    return name
