"""The table of a slot: (step, fact) -> step, and the deadline of each step. docs/slot.md is made from it."""

from collections.abc import Callable

from steward.model.desired import Desired
from steward.model.slot import SlotFact, SlotStep
from steward.policy.state_machine import Table

SETUP_SLACK_S = 60.0
"""How long after the scripts' time limit the step is given up: at the limit, the agent ends and reports them."""


_ROWS: dict[tuple[SlotStep, SlotFact], SlotStep | None] = {
    (SlotStep.WAITING, SlotFact.UNWANTED): SlotStep.END,
    (SlotStep.WAITING, SlotFact.HOSTED): SlotStep.SERVING,
    (SlotStep.WAITING, SlotFact.SERVES): SlotStep.SERVING,
    (SlotStep.WAITING, SlotFact.FOUND): SlotStep.PROVISION,
    (SlotStep.WAITING, SlotFact.DUE): SlotStep.LAUNCH,
    (SlotStep.LAUNCH, SlotFact.UNWANTED): SlotStep.END,
    (SlotStep.LAUNCH, SlotFact.LAUNCHED): SlotStep.PROVISION,
    (SlotStep.LAUNCH, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.LAUNCH, SlotFact.REFUSED): SlotStep.WAITING,
    (SlotStep.LAUNCH, SlotFact.LATE): SlotStep.WAITING,
    (SlotStep.PROVISION, SlotFact.UNWANTED): SlotStep.END,
    (SlotStep.PROVISION, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.PROVISION, SlotFact.CONNECTED): SlotStep.SETUP,
    (SlotStep.PROVISION, SlotFact.LATE): SlotStep.END,
    (SlotStep.SETUP, SlotFact.UNWANTED): SlotStep.END,
    (SlotStep.SETUP, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.SETUP, SlotFact.PREPARED): SlotStep.VERIFY,
    (SlotStep.SETUP, SlotFact.FAILED): SlotStep.END,
    (SlotStep.SETUP, SlotFact.STUMBLED): SlotStep.SETUP,
    (SlotStep.SETUP, SlotFact.LATE): SlotStep.END,
    (SlotStep.VERIFY, SlotFact.UNWANTED): SlotStep.END,
    (SlotStep.VERIFY, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.VERIFY, SlotFact.SOUND): SlotStep.RETURN,
    (SlotStep.VERIFY, SlotFact.LATE): SlotStep.END,
    (SlotStep.RETURN, SlotFact.UNWANTED): SlotStep.DRAIN,
    (SlotStep.RETURN, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.RETURN, SlotFact.TAKEN): SlotStep.SERVING,
    (SlotStep.RETURN, SlotFact.UNFIT): SlotStep.END,
    (SlotStep.RETURN, SlotFact.BACK): SlotStep.SERVING,
    (SlotStep.RETURN, SlotFact.LATE): SlotStep.VERIFY,
    (SlotStep.SERVING, SlotFact.UNWANTED): SlotStep.DRAIN,
    (SlotStep.SERVING, SlotFact.LOST): SlotStep.WAITING,
    (SlotStep.DRAIN, SlotFact.LOST): SlotStep.END,
    (SlotStep.DRAIN, SlotFact.KEPT): SlotStep.RETURN,
    (SlotStep.DRAIN, SlotFact.EMPTY): SlotStep.BACKUP,
    (SlotStep.DRAIN, SlotFact.HURRIED): SlotStep.BACKUP,
    (SlotStep.BACKUP, SlotFact.LOST): SlotStep.END,
    (SlotStep.BACKUP, SlotFact.SAVED): SlotStep.END,
    (SlotStep.BACKUP, SlotFact.UNSAVED): SlotStep.BACKUP,
    (SlotStep.END, SlotFact.GONE): None,
    (SlotStep.END, SlotFact.VACATED): SlotStep.WAITING,
}
SLOT_TABLE = Table(_ROWS)

_DEADLINES: dict[SlotStep, Callable[[Desired], float]] = {
    SlotStep.LAUNCH: lambda want: want.repair.launch_timeout_s,
    SlotStep.PROVISION: lambda want: want.repair.provision_timeout_s,
    SlotStep.SETUP: lambda want: want.capacity.setup_timeout_s + SETUP_SLACK_S,
    SlotStep.VERIFY: lambda want: want.repair.verify_timeout_s,
    SlotStep.RETURN: lambda want: want.repair.return_timeout_s,
}


TIMED = frozenset(_DEADLINES)
"""The steps with a deadline; time in which nothing could be done for the slot does not count."""


def deadline(step: SlotStep, want: Desired) -> float | None:
    """Return the seconds that a slot may stay in a step; None for a step without such a limit."""
    # WAITING asks again for ever, SERVING has no end, DRAIN ends at the slot's own deadline, BACKUP waits for its
    # command or a person, and END for the provider.
    of = _DEADLINES.get(step)
    return of(want) if of else None


_HEAD = """# A slot: one place in a group, from the wish to a node in service and out again

Made from the table in `daemon/steward/policy/groups/slot_table.py` by `python -m steward.policy.groups.slot_table`;
a test compares. In each step the facts are tried in the order of the first table; the first that is true decides the
next step. Facts come from the picture of the world alone, never from what a call returned.

A slot leaves when its group shrinks or is deleted, or when a person deletes its node; a software update makes it anew.
A node takes no job before its scripts ran and its checks passed. While a slot serves, faults of its node are
repaired by a [case](case.md).
"""


def page() -> str:
    """Return the text of docs/slot.md."""
    return SLOT_TABLE.page(_HEAD, SlotStep.WAITING, _limit, "meaning (it: the slot)")


def _limit(step: SlotStep) -> str:
    seconds = deadline(step, Desired())
    return _NO_LIMIT[step] if seconds is None else f"{seconds:.0f} s"


_NO_LIMIT = {
    SlotStep.WAITING: "asks again for ever",
    SlotStep.SERVING: "none",
    SlotStep.DRAIN: "`drain_deadline_s`, `update_drain_deadline_s`",
    SlotStep.BACKUP: "the command's; then a person",
    SlotStep.END: "the provider's",
}


if __name__ == "__main__":
    print(page(), end="")
