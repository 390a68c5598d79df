"""Test beds of every kind: made, found again, brought back to what they were after `up` (much faster than a new one),
and taken down whole, however often somebody interrupts."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steward.adapters.process import Failed
from steward_bed.bed import Backend, Bed, BedError, BedSpec, Say
from steward_bed.docker import DockerBed
from steward_bed.layout import MANIFEST
from steward_bed.local import LocalBed
from steward_bed.wait import accused, ask_head, await_ready, node_states, open_cases, wait_until, wait_until_empty

_Handler = Callable[[int, Any], Any] | int


def make(spec: BedSpec) -> Bed:
    """A bed that is not up yet. Raises BedError for what the backend cannot be."""
    if spec.backend is Backend.LOCAL:
        return LocalBed(spec)
    if spec.fixed:
        raise BedError("fixed machines are for the local backend; use --backend local")
    return DockerBed(spec)


def find(directory: Path) -> Bed:
    """The bed that was brought up in `directory`. Raises BedError when there is none."""
    try:
        entry = json.loads((directory / MANIFEST).read_text())
    except FileNotFoundError:
        raise BedError(f"no bed in {directory}; `steward-testbed up --dir {directory}` makes one") from None
    return make(BedSpec(dir=directory, backend=Backend(entry["spec"]["backend"])))


# A bed whose program is interrupted: it is taken down, whole.


@contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM ends this program as SIGINT does: what is to be done at the end is done."""
    with _handled({signal.SIGTERM: lambda number, _: sys.exit(128 + number)}):
        yield


def take_down(bed: Bed, say: Say) -> None:
    """`bed.down()`; a signal that would end this program meanwhile is answered with one line."""

    def wait(number: int, _: Any) -> None:
        say(f"{signal.Signals(number).name}: wait, {bed.spec.dir} is being taken down")

    with _handled({signal.SIGINT: wait, signal.SIGTERM: wait}):
        bed.down()


@contextmanager
def _handled(handlers: dict[signal.Signals, _Handler]) -> Iterator[None]:
    """Outside of the main thread signals are somebody else's."""
    is_ours = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, handler) for each, handler in handlers.items()} if is_ours else {}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


# Back to a bed as it was after `up`: for the next test.

_FAULTS_S = 30.0
_JOBS_S = 60.0
_CASES_S = 60.0
_NODES_S = 60.0
_HEALTH_S = 90.0
_HELD = "held"
_RESUMABLE = ("down", "drain", "fail")


def reset(bed: Bed, *, but: str = "") -> None:
    """No fault in force, no job, no open case, no tripped breaker, every node idle and none that the head would take
    out or is about to.

    Jobs with the name `but` stay. A node that was in somebody's hands with a fault of its own is repaired only now,
    when it is given back. Raises NotInTime, saying what would not go away.
    """
    wait_until("every fault is undone", lambda: _restore(bed), _FAULTS_S, every_s=0.2)
    wait_until_empty("no job is left", lambda: _cancel_jobs(bed, but), _JOBS_S, every_s=0.2)
    if bed.spec.steward:
        wait_until_empty("no case is open", lambda: _end_cases(bed), _CASES_S, every_s=0.2)
        wait_until_empty("no breaker is tripped", lambda: _reset_breakers(bed), _CASES_S, every_s=0.2)
    wait_until_empty("every node can take jobs", lambda: _take_back(bed), _NODES_S, every_s=0.2)
    if bed.spec.steward:
        wait_until_empty("nothing speaks against a node", lambda: _unsettled(bed), _HEALTH_S, every_s=0.2)
    await_ready(bed)


def _end_cases(bed: Bed) -> list[str]:
    """Gives back the nodes whose repair waits for a person: nobody else ends it. The cases that are open."""
    cases = open_cases(bed)
    if held := [case.partition(" at ")[0] for case in cases if case.endswith(f" at {_HELD}")]:
        # Refused for a node that has not registered yet: next look.
        bed.run(["scontrol", "update", f"nodename={','.join(held)}", "state=resume"], check=False)
    return cases


def _reset_breakers(bed: Bed) -> list[str]:
    """A fault of many nodes may leave one tripped: the next one's would only be reported. Those that were."""
    tripped = [str(one["scope"]) for one in ask_head(bed, "/v1/breakers")]
    if tripped:
        bed.run(["steward", "breaker", "reset", "--yes"], check=False)
    return tripped


def _unsettled(bed: Bed) -> list[str]:
    """Repairs first: what the head took out it gives back itself."""
    return _take_back(bed) or accused(bed)


def _restore(bed: Bed) -> bool:
    """Raises BedError, which counts as not yet, for a machine that Steward is replacing at this moment."""
    bed.restore()
    return True


def _cancel_jobs(bed: Bed, but: str) -> list[str]:
    """Cancels what is there; the jobs that were."""
    told = bed.run(["squeue", "--noheader", "--all", "--format=%A %T %j"]).text.splitlines()
    jobs = [line for line in told if not but or line.split(" ", 2)[2] != but]
    if ids := sorted({line.split()[0] for line in jobs}):
        bed.run(["scancel", *ids], check=False)
    return jobs


def _take_back(bed: Bed) -> list[str]:
    return (_end_cases(bed) if bed.spec.steward else []) or _resume_nodes(bed)


def _resume_nodes(bed: Bed) -> list[str]:
    """Gives Slurm back what anybody took out; the nodes that were out."""
    out = [name for name, state in node_states(bed).items() if state.startswith(_RESUMABLE)]
    # a case that opened meanwhile ends by itself; a resume would be a person's word to leave that fault alone
    repaired = {case.partition(" at ")[0] for case in open_cases(bed)} if out and bed.spec.steward else set()
    if others := [name for name in out if name not in repaired]:
        try:
            bed.run(["scontrol", "update", f"nodename={','.join(others)}", "state=resume"])
        except Failed:
            return list(out)  # a node that has not registered yet cannot be resumed: next look
    return [str(name) for name in out]
