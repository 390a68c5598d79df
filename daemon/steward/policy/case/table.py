"""The table of a case: (step, fact) -> step, and the deadline of each step. docs/case.md is made from it."""

from collections.abc import Callable
from enum import Enum

from steward.model.case import CaseStep
from steward.model.repair_policy import SUSPECT_S, RepairPolicy
from steward.policy.state_machine import Table


class CaseFact(Enum):
    """A fact that the picture shows about a case. The value is the sentence in the diagram and in events."""

    CLEARED = "the fault is gone: its agent is back, slurmd answers, or the check passes"
    INCIDENT = "many nodes at once: not this node's fault"
    CONFIRMED = "the fault is certain and Steward may act"
    COMMANDED = "an admin gave a new command"
    TAKEN = "the node is out of service, but not by Steward"
    FREED = "a person gave the node back"
    WORSE = "the node died, or a fatal fault was found"
    OUT = "Slurm shows the node out of service"
    UNMANAGED = "no provider can replace this node"
    WORN_OUT = "too many repairs of this node or its hardware lately: quarantine"
    USED_UP = "this remedy was tried too often lately, the next one is due"
    GENTLE = "no job is on the node, it is its turn: a light repair comes first, or the checks alone"
    MENDED = "the node's agent carried out the light repair, or there was none to do"
    NO_HELP = "the light repair did not help, the next remedy is due"
    READY = "no job can continue on the node, and it is its turn"
    REFUSED = "the provider refused too often"
    ESCALATE = "the reboot did not help"
    NOT_DONE = "the reboot could not be carried out"
    LAUNCHED = "the new instance exists"
    HEARD_AGAIN = "the lost machine is heard again: its checks decide"
    CAME = "the new machine came after its deadline: its checks decide"
    REBORN = "the agent of the new or rebooted machine is connected"
    DUD = "the new or rebooted machine failed, another try follows"
    SPENT = "the new or rebooted machine failed, and no try is left"
    SOUND = "all checks passed after the repair and slurmd is registered"
    STOOD_IN = "a spare serves in its place, and the node itself is left to a person"
    UNPROVED = "the test job that should show whether jobs can start did not run: a person must look"
    BACK = "Slurm starts jobs on the node again"
    LATE = "the step's deadline passed"


_ROWS: dict[tuple[CaseStep, CaseFact], CaseStep] = {
    (CaseStep.SUSPECT, CaseFact.INCIDENT): CaseStep.CLOSED,
    (CaseStep.SUSPECT, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.SUSPECT, CaseFact.CLEARED): CaseStep.CLOSED,
    (CaseStep.SUSPECT, CaseFact.CONFIRMED): CaseStep.DRAIN,
    (CaseStep.SUSPECT, CaseFact.LATE): CaseStep.CLOSED,
    (CaseStep.DRAIN, CaseFact.COMMANDED): CaseStep.CLOSED,
    (CaseStep.DRAIN, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.DRAIN, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.DRAIN, CaseFact.WORSE): CaseStep.DRAIN,
    (CaseStep.DRAIN, CaseFact.OUT): CaseStep.RELEASE,
    (CaseStep.DRAIN, CaseFact.LATE): CaseStep.HELD,
    (CaseStep.RELEASE, CaseFact.COMMANDED): CaseStep.CLOSED,
    (CaseStep.RELEASE, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.RELEASE, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.RELEASE, CaseFact.WORSE): CaseStep.DRAIN,
    (CaseStep.RELEASE, CaseFact.USED_UP): CaseStep.RELEASE,
    (CaseStep.RELEASE, CaseFact.HEARD_AGAIN): CaseStep.RELEASE,
    (CaseStep.RELEASE, CaseFact.UNMANAGED): CaseStep.HELD,
    (CaseStep.RELEASE, CaseFact.WORN_OUT): CaseStep.HELD,
    (CaseStep.RELEASE, CaseFact.GENTLE): CaseStep.MEND,
    (CaseStep.RELEASE, CaseFact.READY): CaseStep.LAUNCH,
    (CaseStep.RELEASE, CaseFact.LATE): CaseStep.HELD,
    (CaseStep.MEND, CaseFact.COMMANDED): CaseStep.CLOSED,
    (CaseStep.MEND, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.MEND, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.MEND, CaseFact.MENDED): CaseStep.VERIFY,
    (CaseStep.MEND, CaseFact.NO_HELP): CaseStep.RELEASE,
    (CaseStep.LAUNCH, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.LAUNCH, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.LAUNCH, CaseFact.LAUNCHED): CaseStep.PROVISION,
    (CaseStep.LAUNCH, CaseFact.HEARD_AGAIN): CaseStep.RELEASE,
    (CaseStep.LAUNCH, CaseFact.NOT_DONE): CaseStep.LAUNCH,
    (CaseStep.LAUNCH, CaseFact.ESCALATE): CaseStep.LAUNCH,
    (CaseStep.LAUNCH, CaseFact.UNMANAGED): CaseStep.HELD,
    (CaseStep.LAUNCH, CaseFact.DUD): CaseStep.LAUNCH,
    (CaseStep.LAUNCH, CaseFact.SPENT): CaseStep.HELD,
    (CaseStep.LAUNCH, CaseFact.REFUSED): CaseStep.HELD,
    (CaseStep.LAUNCH, CaseFact.LATE): CaseStep.HELD,
    (CaseStep.PROVISION, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.PROVISION, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.PROVISION, CaseFact.REBORN): CaseStep.VERIFY,
    (CaseStep.PROVISION, CaseFact.DUD): CaseStep.LAUNCH,
    (CaseStep.PROVISION, CaseFact.SPENT): CaseStep.HELD,
    (CaseStep.VERIFY, CaseFact.INCIDENT): CaseStep.CLOSED,
    (CaseStep.VERIFY, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.VERIFY, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.VERIFY, CaseFact.SOUND): CaseStep.RETURN,
    (CaseStep.VERIFY, CaseFact.NO_HELP): CaseStep.RELEASE,
    (CaseStep.VERIFY, CaseFact.DUD): CaseStep.LAUNCH,
    (CaseStep.VERIFY, CaseFact.SPENT): CaseStep.HELD,
    (CaseStep.RETURN, CaseFact.INCIDENT): CaseStep.CLOSED,
    (CaseStep.RETURN, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.RETURN, CaseFact.STOOD_IN): CaseStep.HELD,
    (CaseStep.RETURN, CaseFact.BACK): CaseStep.CLOSED,
    (CaseStep.RETURN, CaseFact.UNPROVED): CaseStep.HELD,
    (CaseStep.RETURN, CaseFact.NO_HELP): CaseStep.RELEASE,
    (CaseStep.RETURN, CaseFact.DUD): CaseStep.LAUNCH,
    (CaseStep.RETURN, CaseFact.SPENT): CaseStep.HELD,
    (CaseStep.RETURN, CaseFact.LATE): CaseStep.HELD,
    (CaseStep.HELD, CaseFact.COMMANDED): CaseStep.CLOSED,
    (CaseStep.HELD, CaseFact.TAKEN): CaseStep.CLOSED,
    (CaseStep.HELD, CaseFact.FREED): CaseStep.CLOSED,
    (CaseStep.HELD, CaseFact.HEARD_AGAIN): CaseStep.RELEASE,
    (CaseStep.HELD, CaseFact.CAME): CaseStep.VERIFY,
}
CASE_TABLE = Table(_ROWS)

_DEADLINES: dict[CaseStep, Callable[[RepairPolicy], float]] = {
    CaseStep.SUSPECT: lambda rules: SUSPECT_S,
    CaseStep.DRAIN: lambda rules: rules.drain_deadline_s,
    CaseStep.RELEASE: lambda rules: rules.release_deadline_s,
    CaseStep.MEND: lambda rules: rules.budgets.reset_timeout_s,
    CaseStep.LAUNCH: lambda rules: rules.launch_timeout_s,
    CaseStep.PROVISION: lambda rules: rules.provision_timeout_s,
    CaseStep.VERIFY: lambda rules: rules.verify_timeout_s,
    CaseStep.RETURN: lambda rules: rules.return_timeout_s,
}


def deadline(step: CaseStep, rules: RepairPolicy) -> float | None:
    """Return how many seconds a case may stay in a step; None for HELD and CLOSED."""
    of = _DEADLINES.get(step)
    return of(rules) if of else None


_HEAD = """# A case: one node's repair

Made from the table in `daemon/steward/policy/case/table.py` by `python -m steward.policy.case.table`; a test
compares. In each step the facts are tried in the order of the first table; the first that is true decides the next
step. Facts come from the picture of the world alone, never from what a call returned. The deadline of release is for
the jobs on the node; its turn, or a person's approval, is waited for without limit.
"""


def page() -> str:
    """Return the text of docs/case.md."""
    return CASE_TABLE.page(_HEAD, CaseStep.SUSPECT, _limit)


def _limit(step: CaseStep) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
