"""Back to a bed as it was after `up`, much faster than a new one: for the next test."""

from steward.adapters.process import Failed
from steward.testbed.bed import Bed
from steward.testbed.wait import accused, ask_head, await_ready, node_states, open_cases, wait_until, wait_until_empty

_FAULTS_S = 30.0
_JOBS_S = 60.0
_CASES_S = 60.0
_NODES_S = 60.0
_HEALTH_S = 90.0
_HELD = "held"
_RESUMABLE = ("down", "drain", "fail")


def reset(bed: Bed) -> None:
    """No fault in force, no job, no open case, no tripped breaker, every node idle and none that the head would take
    out or is about to.

    A node that was in somebody's hands with a fault of its own is repaired only now, when it is given back. Raises
    NotInTime, saying what would not go away.
    """
    wait_until("every fault is undone", lambda: _restore(bed), _FAULTS_S, every_s=0.2)
    wait_until_empty("no job is left", lambda: _cancel_jobs(bed), _JOBS_S, every_s=0.2)
    if bed.spec.steward:
        wait_until_empty("no case is open", lambda: _end_cases(bed), _CASES_S, every_s=0.2)
        wait_until_empty("no breaker is tripped", lambda: _reset_breakers(bed), _CASES_S, every_s=0.2)
    wait_until("every node can take jobs", lambda: not _resume_nodes(bed), _NODES_S, every_s=0.2)
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
        bed.run(["steward", "breaker", "reset"], check=False)
    return tripped


def _unsettled(bed: Bed) -> list[str]:
    """Repairs first: what the head took out it gives back itself."""
    return _end_cases(bed) or _resume_nodes(bed) or accused(bed)


def _restore(bed: Bed) -> bool:
    """Raises BedError, which counts as not yet, for a machine that Steward is replacing at this moment."""
    bed.restore()
    return True


def _cancel_jobs(bed: Bed) -> list[str]:
    """Cancels what is there; the jobs that were."""
    jobs = bed.run(["squeue", "--noheader", "--all", "--format=%A %T"]).text.splitlines()
    if ids := sorted({line.split()[0] for line in jobs}):
        bed.run(["scancel", *ids], check=False)
    return jobs


def _resume_nodes(bed: Bed) -> list[str]:
    """Gives Slurm back what anybody took out; the nodes that were out."""
    out = [name for name, state in node_states(bed).items() if state.startswith(_RESUMABLE)]
    if out:
        try:
            bed.run(["scontrol", "update", f"nodename={','.join(out)}", "state=resume"])
        except Failed:
            return list(out)  # a node that has not registered yet cannot be resumed: next look
    return [str(name) for name in out]
