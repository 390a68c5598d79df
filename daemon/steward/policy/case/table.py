"""The table of a case: (step, fact) -> step, and the deadline of each step. docs/case.md is made from it."""

from collections.abc import Callable
from enum import Enum

from steward.model.case import Step
from steward.model.repair_policy import RepairPolicy
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


_ROWS: dict[tuple[Step, CaseFact], Step] = {
    (Step.SUSPECT, CaseFact.INCIDENT): Step.CLOSED,
    (Step.SUSPECT, CaseFact.TAKEN): Step.CLOSED,
    (Step.SUSPECT, CaseFact.CLEARED): Step.CLOSED,
    (Step.SUSPECT, CaseFact.CONFIRMED): Step.DRAIN,
    (Step.SUSPECT, CaseFact.LATE): Step.CLOSED,
    (Step.DRAIN, CaseFact.COMMANDED): Step.CLOSED,
    (Step.DRAIN, CaseFact.TAKEN): Step.CLOSED,
    (Step.DRAIN, CaseFact.FREED): Step.CLOSED,
    (Step.DRAIN, CaseFact.WORSE): Step.DRAIN,
    (Step.DRAIN, CaseFact.OUT): Step.RELEASE,
    (Step.DRAIN, CaseFact.LATE): Step.HELD,
    (Step.RELEASE, CaseFact.COMMANDED): Step.CLOSED,
    (Step.RELEASE, CaseFact.TAKEN): Step.CLOSED,
    (Step.RELEASE, CaseFact.FREED): Step.CLOSED,
    (Step.RELEASE, CaseFact.WORSE): Step.DRAIN,
    (Step.RELEASE, CaseFact.USED_UP): Step.RELEASE,
    (Step.RELEASE, CaseFact.HEARD_AGAIN): Step.RELEASE,
    (Step.RELEASE, CaseFact.UNMANAGED): Step.HELD,
    (Step.RELEASE, CaseFact.WORN_OUT): Step.HELD,
    (Step.RELEASE, CaseFact.GENTLE): Step.MEND,
    (Step.RELEASE, CaseFact.READY): Step.LAUNCH,
    (Step.RELEASE, CaseFact.LATE): Step.HELD,
    (Step.MEND, CaseFact.COMMANDED): Step.CLOSED,
    (Step.MEND, CaseFact.TAKEN): Step.CLOSED,
    (Step.MEND, CaseFact.FREED): Step.CLOSED,
    (Step.MEND, CaseFact.MENDED): Step.VERIFY,
    (Step.MEND, CaseFact.NO_HELP): Step.RELEASE,
    (Step.LAUNCH, CaseFact.TAKEN): Step.CLOSED,
    (Step.LAUNCH, CaseFact.FREED): Step.CLOSED,
    (Step.LAUNCH, CaseFact.LAUNCHED): Step.PROVISION,
    (Step.LAUNCH, CaseFact.HEARD_AGAIN): Step.RELEASE,
    (Step.LAUNCH, CaseFact.NOT_DONE): Step.LAUNCH,
    (Step.LAUNCH, CaseFact.ESCALATE): Step.LAUNCH,
    (Step.LAUNCH, CaseFact.UNMANAGED): Step.HELD,
    (Step.LAUNCH, CaseFact.DUD): Step.LAUNCH,
    (Step.LAUNCH, CaseFact.SPENT): Step.HELD,
    (Step.LAUNCH, CaseFact.REFUSED): Step.HELD,
    (Step.LAUNCH, CaseFact.LATE): Step.HELD,
    (Step.PROVISION, CaseFact.TAKEN): Step.CLOSED,
    (Step.PROVISION, CaseFact.FREED): Step.CLOSED,
    (Step.PROVISION, CaseFact.REBORN): Step.VERIFY,
    (Step.PROVISION, CaseFact.DUD): Step.LAUNCH,
    (Step.PROVISION, CaseFact.SPENT): Step.HELD,
    (Step.VERIFY, CaseFact.INCIDENT): Step.CLOSED,
    (Step.VERIFY, CaseFact.TAKEN): Step.CLOSED,
    (Step.VERIFY, CaseFact.FREED): Step.CLOSED,
    (Step.VERIFY, CaseFact.SOUND): Step.RETURN,
    (Step.VERIFY, CaseFact.NO_HELP): Step.RELEASE,
    (Step.VERIFY, CaseFact.DUD): Step.LAUNCH,
    (Step.VERIFY, CaseFact.SPENT): Step.HELD,
    (Step.RETURN, CaseFact.INCIDENT): Step.CLOSED,
    (Step.RETURN, CaseFact.TAKEN): Step.CLOSED,
    (Step.RETURN, CaseFact.STOOD_IN): Step.HELD,
    (Step.RETURN, CaseFact.BACK): Step.CLOSED,
    (Step.RETURN, CaseFact.UNPROVED): Step.HELD,
    (Step.RETURN, CaseFact.NO_HELP): Step.RELEASE,
    (Step.RETURN, CaseFact.DUD): Step.LAUNCH,
    (Step.RETURN, CaseFact.SPENT): Step.HELD,
    (Step.RETURN, CaseFact.LATE): Step.HELD,
    (Step.HELD, CaseFact.COMMANDED): Step.CLOSED,
    (Step.HELD, CaseFact.TAKEN): Step.CLOSED,
    (Step.HELD, CaseFact.FREED): Step.CLOSED,
    (Step.HELD, CaseFact.HEARD_AGAIN): Step.RELEASE,
    (Step.HELD, CaseFact.CAME): Step.VERIFY,
}
TABLE = Table(_ROWS)

_DEADLINES: dict[Step, Callable[[RepairPolicy], float]] = {
    Step.SUSPECT: lambda rules: rules.suspect_deadline_s,
    Step.DRAIN: lambda rules: rules.drain_deadline_s,
    Step.RELEASE: lambda rules: rules.release_deadline_s,
    Step.MEND: lambda rules: rules.budgets.reset_timeout_s,
    Step.LAUNCH: lambda rules: rules.launch_timeout_s,
    Step.PROVISION: lambda rules: rules.provision_timeout_s,
    Step.VERIFY: lambda rules: rules.verify_timeout_s,
    Step.RETURN: lambda rules: rules.return_timeout_s,
}


def deadline(step: Step, rules: RepairPolicy) -> float | None:
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
    return TABLE.page(_HEAD, Step.SUSPECT, _limit)


def _limit(step: Step) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
