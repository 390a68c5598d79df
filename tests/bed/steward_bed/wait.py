"""Waiting for a sentence to become true; above all that a bed is up."""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import requests

from steward.model.ids import NodeName
from steward.ports import PortError
from steward_bed.bed import Bed, BedError

T = TypeVar("T")
_MOST = 10
"""Times the given time that something may take which moves on."""


_PRESSURE = Path("/proc/pressure/cpu")
_LEAST = 0.2
"""So much of a second counts where others wait for a processor all the time."""
_SHORTEST_S, _LONGEST_S = 0.05, 0.2
"""Between two looks. Most are a command of Slurm: looks of many waits at once would keep a small machine busy."""


def calm(pressure: Path = _PRESSURE) -> float:
    """The share of the last ten seconds in which nobody waited for a processor, but a fifth at least; 1 where the
    kernel does not tell (Linux's pressure stall information)."""
    try:
        told = re.match(r"some avg10=([0-9.]+)", pressure.read_text())
    except OSError:
        return 1.0
    return max(_LEAST, 1.0 - float(told[1]) / 100.0) if told else 1.0


def pause_s(waited_s: float) -> float:
    """How long to rest before the next look, for one that waits so long already."""
    return min(_LONGEST_S, max(_SHORTEST_S, 0.1 * waited_s))


class NotInTime(BedError):
    """The sentence did not become true in time; the message says what was seen last."""


def wait_until(
    sentence: str,
    look: Callable[[], T],
    deadline_s: float,
    *,
    every_s: float | None = None,
    seen: Callable[[], object] | None = None,
    moves: Callable[[], object] | None = None,
    share: Callable[[], float] = calm,
) -> T:
    """Look until the answer is true, and return it. The last look begins when the time is over. Without `every_s`, the
    seconds between two looks, these grow with the time waited.

    A look that raises PortError or BedError counts as "not yet". Raises NotInTime after `deadline_s` seconds; its
    message has the last answer or error, and what `seen` tells then. While the answer of `moves` changes, the time
    begins anew: on a busy machine what goes on is late, and not stuck. For the same reason only that part of a second
    counts that `share` tells.
    """
    try:
        return _look_until(sentence, look, bool, deadline_s, every_s, moves, share)
    except NotInTime as error:
        raise error if seen is None else NotInTime(f"{error}\n{seen()}") from None


def wait_until_empty(sentence: str, look: Callable[[], T], deadline_s: float, *, every_s: float | None = None) -> None:
    """The same for what is still missing: the message of NotInTime then lists exactly that."""
    _look_until(sentence, look, lambda answer: not answer, deadline_s, every_s, None, calm)


def _look_until(
    sentence: str,
    look: Callable[[], T],
    good: Callable[[T], bool],
    deadline_s: float,
    every_s: float | None,
    moves: Callable[[], object] | None,
    share: Callable[[], float],
) -> T:
    began = at = time.monotonic()
    spent = moved = 0.0
    before = moves and moves()
    while True:
        if moves is not None and (now := moves()) != before:
            moved, before = min(spent, (_MOST - 1) * deadline_s), now
        is_last = spent - moved >= deadline_s  # before the look: what it sees may be older than its end
        try:
            answer = look()
            if good(answer):
                return answer
            last = repr(answer)
        except (PortError, BedError) as error:
            last = str(error)
        if is_last:
            raise NotInTime(f"not within {deadline_s:g} s: {sentence}; last seen: {last}")
        time.sleep(every_s if every_s is not None else pause_s(time.monotonic() - began))
        passed, at = time.monotonic() - at, time.monotonic()
        spent += passed * share()


# When a bed is up, whatever it is made of.

_NODES_S = 90.0
_AGENTS_S = 90.0
_HTTP_S = 5.0
_AT_REST = ("fine", "suspect", "report-only", "unwatched")
"""Words of `steward nodes` after which the node stays as it is."""


def node_states(bed: Bed) -> Mapping[NodeName, str]:
    """Slurm's word for each node that has a machine, such as "idle", "mixed", "down*" or "drained". Raises Failed
    without an answer.

    `planned` is idle: what backfill had in mind for a node whose job is gone stands until its next pass, 30 s later.
    """
    which = ["--nodes", ",".join(_names(bed))] if bed.spec.silent else []
    lines = bed.run(["sinfo", "--noheader", "--Node", "--format=%N %T", *which], timeout_s=10).text.splitlines()
    return {NodeName(name): "idle" if state == "planned" else state for name, state in (line.split() for line in lines)}


def call_silent_nodes(bed: Bed) -> None:
    """The nodes that are only in slurm.conf become nodes, which are DOWN."""
    if bed.spec.silent:
        change = [f"nodename={bed.spec.silent_names}", "state=down", "reason=bed"]
        bed.run(["scontrol", "update", *change], timeout_s=_NODES_S)


def await_ready(bed: Bed) -> None:
    """Returns when Slurm calls every node idle (a spare of fixed machines: drained) and, with Steward, every agent is
    connected to the head."""
    await_nodes(bed)
    if bed.spec.steward:
        await_agents(bed)


def await_nodes(bed: Bed) -> None:
    """Returns when Slurm calls every node idle."""

    def not_idle() -> dict[NodeName, str]:
        states = node_states(bed)
        wanted = dict.fromkeys(_names(bed), "idle")
        if bed.spec.fixed and bed.spec.steward:
            wanted |= dict.fromkeys(bed.spec.spare_names, "drained")
        return {name: states.get(name, "unknown") for name in wanted if states.get(name) != wanted[name]}

    wait_until_empty("every node is idle in Slurm", not_idle, _NODES_S)


def await_agents(bed: Bed) -> None:
    """Returns when every agent is connected to the head."""

    def not_connected() -> list[NodeName]:
        nodes = {node["name"]: node["agent"] for node in ask_head(bed, "/v1/nodes")}
        return [name for name in _names(bed) if not (nodes.get(name) or {}).get("connected")]

    wait_until_empty("every agent is connected to the head", not_connected, _AGENTS_S)


def await_picture(bed: Bed) -> None:
    """Wait until the head has read the states that Slurm gives the nodes now: `steward status` says what sinfo says."""

    def unread() -> list[NodeName]:
        nodes = {node["name"]: node["state"] for node in ask_head(bed, "/v1/nodes")}
        return [name for name in _names(bed) if nodes.get(name) == "unknown"]

    wait_until_empty("the head has read every node's state", unread, _AGENTS_S)


def open_cases(bed: Bed) -> list[str]:
    """ "n3 at drain" for each repair under way."""
    return [f"{case['node']} at {case['step']}" for case in ask_head(bed, "/v1/cases") if case["open"]]


def accused(bed: Bed) -> list[str]:
    """ "n3 is degraded" for each node that the head sees out of service, or will take out."""
    said = {node["name"]: node["verdict"] for node in ask_head(bed, "/v1/nodes")}
    silent = set() if not bed.spec.silent else said.keys() - set(_names(bed))
    return [f"{name} is {word}" for name, word in said.items() if word not in _AT_REST and name not in silent]


def ask_head(bed: Bed, path: str) -> Any:
    """A page of stewardd's HTTP API. Raises BedError when there is no good answer."""
    try:
        answer = requests.get(bed.env["STEWARD_URL"] + path, timeout=_HTTP_S)
        answer.raise_for_status()
        return answer.json()
    except requests.RequestException as error:
        raise BedError(f"stewardd does not answer {path}: {error}") from error


def _names(bed: Bed) -> tuple[NodeName, ...]:
    """Those that are there from the start."""
    return () if bed.spec.groups else bed.spec.machine_names
