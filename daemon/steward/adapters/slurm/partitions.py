"""Partitions as `scontrol show partitions` prints them: the same text in every Slurm, written only by admins."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from steward.adapters.process import show
from steward.adapters.slurm import record_form, rules
from steward.adapters.slurm.include import IncludeFile, parse_partitions
from steward.adapters.slurm.record_form import PARTITION
from steward.adapters.slurm.words import expand, first_words
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.partition import Admission, Partition, PartitionState
from steward.ports import Permanent, PortError, Retryable

_STATES = {state.value: state for state in PartitionState}
_NONE = "No partitions in the system"
_MAX_TIME = re.compile(r"\bMaxTime=(?:UNLIMITED|(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>\d\d):\d\d)(?:\s|$)")
_BOOT = re.compile(r"^BOOT_TIME\s*=\s*(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*$", re.MULTILINE)


def slurmctld_started(answer: str) -> float:
    """Return when slurmctld started (Unix s), from `scontrol show config` in UTC.

    Raises Retryable if BOOT_TIME is missing. In 24.11 a reconfigure counts as a start.
    """
    if match := _BOOT.search(answer):
        return datetime.fromisoformat(match["at"]).replace(tzinfo=UTC).timestamp()
    raise Retryable("Slurm's answer has no BOOT_TIME in it: not believed")


NodesOf = Callable[[str], frozenset[NodeName]]


class Reader:
    """A reader of partitions that remembers the expanded node lists of its last answer.

    To expand ten thousand names takes longer than everything else that a recovery waits for.
    """

    def __init__(self) -> None:
        self._known: Mapping[str, frozenset[NodeName]] = {}

    def read(self, answer: str, loaded: float) -> dict[str, Partition]:
        """Return the partitions of a text, as `partitions` does."""
        return self._with_known(lambda nodes_of: partitions(answer, loaded, nodes_of))

    def records(self, lines: Sequence[str]) -> dict[str, Partition]:
        """Return the partitions of steward-slurm's records. Raises Garbled, or Retryable for a bad list of nodes."""
        return self._with_known(
            lambda nodes_of: {each.name: each for each in (of_record(line, nodes_of) for line in lines)}
        )

    def _with_known(self, read: Callable[[NodesOf], dict[str, Partition]]) -> dict[str, Partition]:
        """Return what `read` finds; it gets a function that expands node lists and remembers the last answer's."""
        known, seen = self._known, dict[str, frozenset[NodeName]]()

        def nodes_of(text: str) -> frozenset[NodeName]:
            seen[text] = known[text] if text in known else expand(text)
            return seen[text]

        found = read(nodes_of)
        self._known = seen
        return found


def partitions(answer: str, loaded: float, nodes_of: NodesOf = expand) -> dict[str, Partition]:
    """Return every partition of `scontrol --all --oneliner show partitions`.

    Raises Retryable for an unreadable line.
    """
    lines = [line for line in answer.splitlines() if line.strip() and line.strip() != _NONE]
    if not lines and _NONE not in answer:
        raise Retryable("Slurm's answer has no partition in it: not believed")
    return {found.name: found for found in (_partition(line, loaded, nodes_of) for line in lines)}


def _partition(line: str, loaded: float, nodes_of: NodesOf) -> Partition:
    """Return the partition of one line. Raises Retryable."""
    words = first_words(line)
    try:
        name, state, nodes = words["PartitionName"], words["State"], words["Nodes"]
    except KeyError as error:
        raise Retryable(f"cannot read one of Slurm's partitions: no {error} in '{show(line)}'") from error
    known = _STATES.get(state, PartitionState.UNKNOWN)
    return Partition(
        name=name,
        state=known,
        nodes=nodes_of(nodes),
        loaded=loaded,
        qos=_admission(words, "Qos"),
        accounts=_admission(words, "Accounts"),
        own_qos=words.get("QoS", "").replace("N/A", ""),
    )


def of_record(line: str, nodes_of: NodesOf) -> Partition:
    """Return the partition of a record of steward-slurm. Raises Garbled."""
    of = {name: record_form.unescaped(each) for name, each in PARTITION.read(line).items()}
    return Partition(
        name=of["name"],
        state=_STATES.get(of["state"], PartitionState.UNKNOWN),
        nodes=nodes_of(of["nodes"]),
        loaded=float(of["loaded"]),
        qos=Admission(allow=_names(of["allow_qos"]), deny=_names(of["deny_qos"])),
        accounts=Admission(allow=_names(of["allow_accounts"]), deny=_names(of["deny_accounts"])),
        own_qos=of["own_qos"],
    )


def _admission(words: Mapping[str, str], kind: str) -> Admission | None:
    """Return which QOS or accounts the partition takes; None if Slurm printed neither key."""
    allow, deny = words.get(f"Allow{kind}"), words.get(f"Deny{kind}")
    if not allow and not deny:
        return None
    return Admission(allow=_names(allow), deny=_names(deny))


def _names(text: str | None) -> frozenset[str]:
    """Return the names of a list, without `ALL` and `(null)`."""
    words = (text or "").lower().split(",")
    return frozenset() if "all" in words else frozenset(word for word in words if word and word != "(null)")


def max_minutes(answer: str) -> int | None:
    """Return MaxTime from `scontrol --oneliner show partition NAME`; None if it has no limit.

    Raises Retryable if MaxTime is missing.
    """
    if match := _MAX_TIME.search(answer):
        return None if match["hours"] is None else _as_minutes(match)
    raise Retryable("Slurm's answer has no MaxTime in it: not believed")


def _as_minutes(match: re.Match[str]) -> int:
    """Return the match in minutes."""
    return (int(match["days"] or 0) * 24 + int(match["hours"])) * 60 + int(match["minutes"])


# How our partitions get into Slurm: the file is replaced, Slurm reads it again, and its partitions are checked.
#
# Only text that slurmctld is known to survive is written. Reading the configuration again sets every partition to the
# state in its line (tried on 22.05.8, 24.11.5 and 26.05.5): states that people or `set_gate` had set are restored at
# once.

_POLL_S = 0.1


class Slurm(Protocol):
    """The reads and commands of Slurm that `write` needs."""

    def nodes(self) -> Mapping[NodeName, Node]: ...

    def jobs(self) -> Mapping[JobId, Job]: ...

    def partitions(self) -> Mapping[str, Partition]: ...

    def set_partition_state(self, name: str, state: PartitionState) -> None: ...

    def reconfigure(self) -> None: ...


def write(slurm: Slurm, include: IncludeFile, text: str, *, patience_s: float) -> None:
    """Replace the partitions of our file in Slurm, as `SlurmPort.write_partitions` promises."""
    good = include.last_good_text()
    wanted, was = parse_partitions(text), parse_partitions(good)
    ours = was.states.keys() | parse_partitions(include.text()).states.keys()
    rules.may_write(wanted, ours, slurm.partitions(), slurm.nodes())
    rules.may_drop(ours - wanted.states.keys(), slurm.jobs())
    # read again: nodes and jobs of a large cluster take seconds, and people close partitions
    before = slurm.partitions()
    include.replace(text)
    if wanted.is_like(was) and wanted.states.keys() <= before.keys():
        include.keep_as_good()
        return
    try:
        _read_again(slurm, before, set(wanted.states), patience_s)
    except PortError as error:
        include.replace(good)
        _read_again(slurm, before, set(was.states), patience_s)
        raise Permanent(f"Slurm did not take our partitions, the last good ones are back: {error}") from error
    include.keep_as_good()


def _read_again(slurm: Slurm, before: Mapping[str, Partition], wanted: set[str], patience_s: float) -> None:
    """Have Slurm read its configuration, and restore the states of partitions."""
    slurm.reconfigure()
    after = _partitions_with(slurm, wanted, time.monotonic() + patience_s)
    for name, old in before.items():
        if name in after and after[name].state is not old.state and old.state is not PartitionState.UNKNOWN:
            slurm.set_partition_state(name, old.state)


def _partitions_with(slurm: Slurm, wanted: set[str], until: float) -> Mapping[str, Partition]:
    """Return Slurm's partitions once all of `wanted` exist. Raises Retryable if they do not come in time."""
    while True:
        found = slurm.partitions()
        missing = sorted(wanted - found.keys())
        if not missing:
            return found
        if time.monotonic() > until:
            raise Retryable(f"partition {missing[0]} is not there after a reconfigure")
        time.sleep(_POLL_S)
