"""The one file of Slurm's configuration that Steward writes: partitions of API groups, included by slurm.conf.

With a wrong word in the file, or without it, no Slurm command works any more. So it is replaced as a whole, the last
text that Slurm accepted is kept beside it, and slurm.conf itself is only read. slurmctld also dies of an unknown node
or of a repeated partition: only text of the grammar here is ever written.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from steward.adapters.files import write_whole
from steward.adapters.process import show
from steward.adapters.slurm.words import expand
from steward.model.ids import NodeName
from steward.model.partition import is_reserved
from steward.model.text import cause
from steward.ports import Permanent, Retryable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,1023}")
_STATES = ("UP", "DOWN")
_FIXED_WORDS = {"MaxTime": "INFINITE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLines:
    """The content of the file. `states` has each partition's UP or DOWN, `sets` each node set's feature and nodes."""

    sets: dict[str, tuple[str, frozenset[NodeName]]]
    members: dict[str, tuple[str, ...]]
    """The node sets of each partition."""
    states: dict[str, str]

    @property
    def nodes(self) -> frozenset[NodeName]:
        """Every node that is named, each of which slurmctld must know."""
        return frozenset(node for _, nodes in self.sets.values() for node in nodes)

    def is_like(self, other: "PartitionLines") -> bool:
        """Return whether both are equal apart from the states."""
        return replace(self, states={}) == replace(other, states={}) and self.states.keys() == other.states.keys()


def parse_partitions(text: str) -> PartitionLines:
    """Return the content of the text. Raises Permanent, naming the line, for anything that Steward would not write."""
    lines = PartitionLines(sets={}, members={}, states={})
    for number, line in _lines(text):
        try:
            _add_line(lines, [word.partition("=")[::2] for word in line.split()])
        except (ValueError, KeyError, Retryable) as error:
            raise Permanent(
                f"line {number} of the partitions is not ours to write: {error} in '{show(line)}'"
            ) from error
    return lines


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines without comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _add_line(lines: PartitionLines, pairs: list[tuple[str, str]]) -> None:
    """Add one line. Raises ValueError, KeyError or Retryable for a bad one."""
    words = dict(pairs)
    if len(words) != len(pairs):
        raise ValueError("a word that is there twice")
    if "NodeSet" in words:
        _add_set(lines, words)
    else:
        _add_partition(lines, words)


def _add_set(lines: PartitionLines, words: dict[str, str]) -> None:
    name = _new_name(words.pop("NodeSet"), lines.sets)
    feature, nodes = words.pop("Feature", ""), expand(words.pop("Nodes", ""))
    if words or not (feature or nodes):
        raise ValueError(f"more than Feature and Nodes, or none of them: {show(', '.join(sorted(words)))}")
    lines.sets[name] = (_good_name(feature) if feature else "", nodes)


def _add_partition(lines: PartitionLines, words: dict[str, str]) -> None:
    name = _new_name(words.pop("PartitionName"), lines.states)
    sets, state = tuple(words.pop("Nodes").split(",")) if "Nodes" in words else (), words.pop("State")
    if unknown := set(sets) - lines.sets.keys():
        raise ValueError(f"node sets that were not defined before: {show(', '.join(sorted(unknown)))}")
    if state not in _STATES or words != _FIXED_WORDS:
        raise ValueError("a state that is not UP or DOWN, or more or less than MaxTime=INFINITE")
    lines.members[name], lines.states[name] = sets, state


def _new_name(name: str, known: Mapping[str, object]) -> str:
    """Return the name if it is good and new. Raises ValueError."""
    if name in known:
        raise ValueError(f"{name} is there twice")
    return _good_name(name)


def _good_name(name: str) -> str:
    """Return the name if it is good. Raises ValueError."""
    if not _NAME.fullmatch(name) or is_reserved(name):
        raise ValueError(f"no name: '{show(name)}'")
    return name


_CONF = Path("/etc/slurm/slurm.conf")
_INCLUDE = re.compile(r"^\s*include\s+(?P<file>\S+)", re.IGNORECASE | re.MULTILINE)
_MODE = 0o644


class IncludeFile:
    """The include file. `conf` is slurm.conf (empty: where Slurm looks by itself)."""

    def __init__(self, path: Path, conf: str = "") -> None:
        self._path, self._conf = path, Path(conf) if conf else _CONF

    @property
    def line(self) -> str:
        """Return the line that slurm.conf must have."""
        beside = self._path.parent == self._conf.parent
        return f"include {self._path.name if beside else self._path}"

    def is_included(self) -> bool:
        """Return whether slurm.conf has that line. Raises Retryable if it cannot be read."""
        try:
            text = self._conf.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Retryable(f"cannot read {self._conf}: {cause(error)}") from error
        return any(self._conf.parent / name == self._path for name in _INCLUDE.findall(text))

    def why_not_writable(self) -> str:
        """Return why the file cannot be replaced; empty if it exists and can be."""
        place = self._path.resolve()
        if not place.is_file():
            return f"{self._path} does not exist: make it, owned by SlurmUser, before slurm.conf includes it"
        if not os.access(place.parent, os.W_OK):
            unit = f"`systemctl edit stewardd`: [Service] ReadWritePaths={place.parent}"
            return f"{place.parent} is not writable for SlurmUser, or not for stewardd's unit ({unit})"
        return ""

    def text(self) -> str:
        """Return the text that Slurm reads with its configuration; empty if there is no such file."""
        return self._read(self._path)

    def last_good_text(self) -> str:
        """Return the text that Slurm last read without an error; the present one if that is not known."""
        return self._read(self._good_path) or self.text()

    def replace(self, text: str) -> None:
        """Write the file. Raises Permanent if slurm.conf does not include it, Retryable if it cannot be written."""
        if not self.is_included():
            raise Permanent(f"{self._conf} does not include {self._path}: add the line `{self.line}` to it")
        self._write(self._path.resolve(), text)

    def keep_as_good(self) -> None:
        """Keep the present text as one that Slurm accepted."""
        self._write(self._good_path, self.text())

    @property
    def _good_path(self) -> Path:
        """Return the path of the last good text."""
        place = self._path.resolve()
        return place.with_name(f"{place.name}.good")

    @staticmethod
    def _read(path: Path) -> str:
        """Return the text of a file; empty if there is none. Raises Retryable."""
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise Retryable(f"cannot read {path}: {cause(error)}") from error

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Replace a file. Raises Retryable."""
        try:
            write_whole(path, text, mode=_MODE, sync=True)
        except OSError as error:
            remedy = "make its directory writable for SlurmUser, and for stewardd's unit (ReadWritePaths=)"
            raise Retryable(f"cannot write {path}: {cause(error)}; {remedy}") from error
