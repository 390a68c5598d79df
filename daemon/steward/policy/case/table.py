"""The table of a case: (step, fact) -> step, and the deadline of each step. docs/case.md is made from it."""

from collections.abc import Callable
from enum import Enum

from steward.model.case import Step
from steward.model.repair_policy import RepairPolicy
from steward.policy.state_machine import Table


class Fact(Enum):
    """A fact that the picture shows about a case. The value is the sentence that the diagram and the events show."""

    CLEARED = "the fault is gone: its agent is back, slurmd answers, or the check passes"
    INCIDENT = "many nodes at once: not this node's fault"
    CONFIRMED = "the fault is certain and we may act"
    COMMANDED = "an admin gave a new command"
    TAKEN = "somebody else took the node out of service"
    FREED = "a person gave the node back"
    WORSE = "the node died or a fatal fault came"
    OUT = "Slurm shows the node out of service"
    UNMANAGED = "no provider can replace this node"
    WORN_OUT = "too many repairs of this node or its hardware lately: quarantine"
    USED_UP = "this rung was tried too often lately, the next one is due"
    GENTLE = "no job on it, it is its turn: a light repair, or none but the checks"
    MENDED = "the node's agent carried out the light repair, or none was to be done"
    NO_HELP = "the light repair did not help, the next rung is due"
    READY = "no job on it, and it is its turn"
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
    UNPROVED = "no job of ours could be started on it to see whether jobs can: a person must look"
    BACK = "Slurm starts jobs on the node again"
    LATE = "the step's deadline passed"


_ROWS: dict[tuple[Step, Fact], Step] = {
    (Step.SUSPECT, Fact.INCIDENT): Step.CLOSED,
    (Step.SUSPECT, Fact.TAKEN): Step.CLOSED,
    (Step.SUSPECT, Fact.CLEARED): Step.CLOSED,
    (Step.SUSPECT, Fact.CONFIRMED): Step.DRAIN,
    (Step.SUSPECT, Fact.LATE): Step.CLOSED,
    (Step.DRAIN, Fact.COMMANDED): Step.CLOSED,
    (Step.DRAIN, Fact.TAKEN): Step.CLOSED,
    (Step.DRAIN, Fact.FREED): Step.CLOSED,
    (Step.DRAIN, Fact.WORSE): Step.DRAIN,
    (Step.DRAIN, Fact.OUT): Step.RELEASE,
    (Step.DRAIN, Fact.LATE): Step.HELD,
    (Step.RELEASE, Fact.COMMANDED): Step.CLOSED,
    (Step.RELEASE, Fact.TAKEN): Step.CLOSED,
    (Step.RELEASE, Fact.FREED): Step.CLOSED,
    (Step.RELEASE, Fact.WORSE): Step.DRAIN,
    (Step.RELEASE, Fact.USED_UP): Step.RELEASE,
    (Step.RELEASE, Fact.HEARD_AGAIN): Step.RELEASE,
    (Step.RELEASE, Fact.UNMANAGED): Step.HELD,
    (Step.RELEASE, Fact.WORN_OUT): Step.HELD,
    (Step.RELEASE, Fact.GENTLE): Step.MEND,
    (Step.RELEASE, Fact.READY): Step.LAUNCH,
    (Step.RELEASE, Fact.LATE): Step.HELD,
    (Step.MEND, Fact.COMMANDED): Step.CLOSED,
    (Step.MEND, Fact.TAKEN): Step.CLOSED,
    (Step.MEND, Fact.FREED): Step.CLOSED,
    (Step.MEND, Fact.MENDED): Step.VERIFY,
    (Step.MEND, Fact.NO_HELP): Step.RELEASE,
    (Step.LAUNCH, Fact.TAKEN): Step.CLOSED,
    (Step.LAUNCH, Fact.FREED): Step.CLOSED,
    (Step.LAUNCH, Fact.LAUNCHED): Step.PROVISION,
    (Step.LAUNCH, Fact.HEARD_AGAIN): Step.RELEASE,
    (Step.LAUNCH, Fact.NOT_DONE): Step.LAUNCH,
    (Step.LAUNCH, Fact.ESCALATE): Step.LAUNCH,
    (Step.LAUNCH, Fact.UNMANAGED): Step.HELD,
    (Step.LAUNCH, Fact.DUD): Step.LAUNCH,
    (Step.LAUNCH, Fact.SPENT): Step.HELD,
    (Step.LAUNCH, Fact.REFUSED): Step.HELD,
    (Step.LAUNCH, Fact.LATE): Step.HELD,
    (Step.PROVISION, Fact.TAKEN): Step.CLOSED,
    (Step.PROVISION, Fact.FREED): Step.CLOSED,
    (Step.PROVISION, Fact.REBORN): Step.VERIFY,
    (Step.PROVISION, Fact.DUD): Step.LAUNCH,
    (Step.PROVISION, Fact.SPENT): Step.HELD,
    (Step.VERIFY, Fact.INCIDENT): Step.CLOSED,
    (Step.VERIFY, Fact.TAKEN): Step.CLOSED,
    (Step.VERIFY, Fact.FREED): Step.CLOSED,
    (Step.VERIFY, Fact.SOUND): Step.RETURN,
    (Step.VERIFY, Fact.NO_HELP): Step.RELEASE,
    (Step.VERIFY, Fact.DUD): Step.LAUNCH,
    (Step.VERIFY, Fact.SPENT): Step.HELD,
    (Step.RETURN, Fact.INCIDENT): Step.CLOSED,
    (Step.RETURN, Fact.TAKEN): Step.CLOSED,
    (Step.RETURN, Fact.STOOD_IN): Step.HELD,
    (Step.RETURN, Fact.BACK): Step.CLOSED,
    (Step.RETURN, Fact.UNPROVED): Step.HELD,
    (Step.RETURN, Fact.NO_HELP): Step.RELEASE,
    (Step.RETURN, Fact.DUD): Step.LAUNCH,
    (Step.RETURN, Fact.SPENT): Step.HELD,
    (Step.RETURN, Fact.LATE): Step.HELD,
    (Step.HELD, Fact.COMMANDED): Step.CLOSED,
    (Step.HELD, Fact.TAKEN): Step.CLOSED,
    (Step.HELD, Fact.FREED): Step.CLOSED,
    (Step.HELD, Fact.HEARD_AGAIN): Step.RELEASE,
    (Step.HELD, Fact.CAME): Step.VERIFY,
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
    """Seconds that a case may stay in a step; None: until a person acts (HELD) or for ever (CLOSED)."""
    of = _DEADLINES.get(step)
    return of(rules) if of else None


_HEAD = """# A case: one node's repair

Made from the table in `daemon/steward/policy/case/table.py` by `python -m steward.policy.case.table`; a test
compares. In each step the facts are tried in the order of the first table; the first that is true decides the next
step. Facts come from the picture of the world alone, never from what a call returned. The deadline of release is for
the jobs on the node; its turn, or a person's approval, is waited for without limit.
"""


def page() -> str:
    """The whole of docs/case.md."""
    return TABLE.page(_HEAD, Step.SUSPECT, _limit)


def _limit(step: Step) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
