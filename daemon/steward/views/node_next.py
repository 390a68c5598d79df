"""The next step of the plan for a node, and what it waits for: a few words each."""

from steward.model.case import Case, Step
from steward.model.deep import DeepRun, DeepState
from steward.model.health import Advice
from steward.model.ids import NodeName
from steward.model.slot import COMING, SlotRecord, SlotStep
from steward.model.words import REPORT_ONLY, times, until
from steward.policy.case.spares import free_spare, needs_spare, shortage
from steward.policy.deep.asks import SUSPECT_AGAIN_S
from steward.policy.draft import Draft
from steward.policy.node.approval import why_awaits
from steward.policy.node.budget import must_wait

_DONE = {
    Advice.NONE: "checked again",
    Advice.RESTART_SERVICE: "its service is restarted",
    Advice.RESET_GPU: "its GPU is reset",
    Advice.REBOOT: "rebooted",
    Advice.REPLACE: "replaced",
}
_AWAITED = {
    Step.MEND: "checked when its agent has carried out the light repair",
    Step.PROVISION: "checked when the agent of the new or rebooted machine connects",
    Step.VERIFY: "given back when all its checks passed",
    Step.RETURN: "in service when Slurm starts jobs on it again",
}
_SHOWN_JOBS = 3


def withheld_line(why: str) -> str:
    """Why nothing is done; the report-only mode is the one that new sites meet."""
    return f"nothing: {'reported only (repair.mode)' if why.startswith('repairs are set to report') else why}"


def next_of_case(case: Case, draft: Draft) -> str:
    """`replaced when job 12 ends`, `rebooted; waits for its turn: ...`."""
    if case.step is Step.HELD:
        return _of_held(case)
    if draft.paused:
        return "nothing: actions are paused (`steward resume-actions`)"
    if not draft.want.repair.act:
        return f"nothing: {REPORT_ONLY}"
    if case.step is Step.LAUNCH:
        return _of_launch(case, draft)
    return _AWAITED.get(case.step) or _before_repair(case, draft)


def _of_held(case: Case) -> str:
    resume = f"`scontrol update nodename={case.node} state=resume`"
    if case.is_stood_in:
        return f"a person repairs it, then {resume}; spare {case.stand_in} serves meanwhile"
    return f"a person looks at it, then {resume}, or reason=Action:Replace"


def _before_repair(case: Case, draft: Draft) -> str:
    word = _DONE[case.rung]
    if case.step is Step.SUSPECT and case.why.rule == "node.silent":
        return "taken out of service when a second witness agrees, else left in service"
    if wait := why_awaits(case, draft):
        return wait
    if jobs := _jobs_on(case.node, draft):
        return f"{word} when {jobs}"
    if wait := must_wait(case, draft):
        return f"{word} in its turn: {wait.removeprefix('waits for its turn: ')}"
    return f"{word} as soon as Slurm shows it out of service and free"


def _jobs_on(node: NodeName, draft: Draft) -> str:
    jobs = sorted(job.id for job in draft.seen.jobs.values() if node in job.nodes and not job.is_over)
    if not jobs:
        return ""
    more = f" and {len(jobs) - _SHOWN_JOBS} more" if len(jobs) > _SHOWN_JOBS else ""
    names = ", ".join(str(id) for id in jobs[:_SHOWN_JOBS])
    return f"job {names} ends" if len(jobs) == 1 else f"jobs {names}{more} end"


def _of_launch(case: Case, draft: Draft) -> str:
    if case.tries:
        return f"the provider is asked again {until(case.next_try, draft.now)} (refused {times(case.tries)})"
    if needs_spare(case, draft) and free_spare(case, draft) is None:
        return f"waits for a spare: {shortage(case, draft)}"
    return f"{_DONE[case.rung]} now; then its agent is awaited"


def next_of_deep(run: DeepRun) -> str:
    """A deep check that has its node."""
    return "its result decides" if run.state is DeepState.RUNNING else "its job begins; users' waiting jobs come first"


def next_of_suspect(node: NodeName, draft: Draft) -> str:
    """A suspicion takes no node out: a deep check tells."""
    rules = draft.want.deep
    if not rules.enabled or not rules.suspects:
        return "nothing: deep checks of suspects are off (deep.suspects)"
    mine = [run for run in draft.deeps.values() if node in run.nodes]
    if any(run.is_open and node not in run.results for run in mine):
        return "deep check when it is idle"
    last = max((run for run in mine if node in run.results), key=lambda run: run.asked, default=None)
    if last is not None and draft.now < last.asked + SUSPECT_AGAIN_S:
        again = until(last.asked + SUSPECT_AGAIN_S, draft.now)
        return f"deep check {last.id} said {last.results[node].value}; again {again} if it is still suspect"
    return "deep check when it is idle next"


def next_of_slot(record: SlotRecord, draft: Draft) -> str:
    """A slot on its way."""
    if record.step is SlotStep.WAITING:
        return f"a machine is asked for {until(record.next_try, draft.now)}, in its turn"
    return "comes into service" if record.step in COMING else "its machine is ended"
