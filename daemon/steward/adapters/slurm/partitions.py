"""Partitions as `scontrol show partitions` prints them: the same text in every Slurm, and only admins write into it."""

import re
from datetime import UTC, datetime

from steward.adapters.process import show
from steward.adapters.slurm.words import expand, first_words
from steward.model.partition import Partition, PartitionState
from steward.ports import Retryable

_STATES = {state.value: state for state in PartitionState}
_NONE = "No partitions in the system"
_MAX_TIME = re.compile(r"\bMaxTime=(?:UNLIMITED|(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>\d\d):\d\d)(?:\s|$)")
_BOOT = re.compile(r"^BOOT_TIME\s*=\s*(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*$", re.MULTILINE)


def booted(answer: str) -> float:
    """When slurmctld began (Unix s), from `scontrol show config` in UTC. In 24.11 a reconfigure is a new beginning.

    Raises Retryable when it is not said.
    """
    if match := _BOOT.search(answer):
        return datetime.fromisoformat(match["at"]).replace(tzinfo=UTC).timestamp()
    raise Retryable("Slurm's answer has no BOOT_TIME in it: not believed")


def partitions(answer: str, loaded: float) -> dict[str, Partition]:
    """Every partition of `scontrol --all --oneliner show partitions`. Raises Retryable when a line cannot be read."""
    lines = [line for line in answer.splitlines() if line.strip() and line.strip() != _NONE]
    if not lines and _NONE not in answer:
        raise Retryable("Slurm's answer has no partition in it: not believed")
    return {found.name: found for found in (_partition(line, loaded) for line in lines)}


def _partition(line: str, loaded: float) -> Partition:
    words = first_words(line)
    try:
        name, state, nodes = words["PartitionName"], words["State"], words["Nodes"]
    except KeyError as error:
        raise Retryable(f"cannot read one of Slurm's partitions: no {error} in {show(line)!r}") from error
    known = _STATES.get(state, PartitionState.UNKNOWN)
    return Partition(name=name, state=known, nodes=expand(nodes), loaded=loaded)


def max_minutes(answer: str) -> int | None:
    """MaxTime of the one partition that `scontrol --oneliner show partition NAME` told of; None: it has no limit.

    Raises Retryable when it is not said.
    """
    if match := _MAX_TIME.search(answer):
        return None if match["hours"] is None else _as_minutes(match)
    raise Retryable("Slurm's answer has no MaxTime in it: not believed")


def _as_minutes(match: re.Match[str]) -> int:
    return (int(match["days"] or 0) * 24 + int(match["hours"])) * 60 + int(match["minutes"])
