"""The matrix turns red when a rule of the head is broken; and the same cells are green for the head as it is."""

from collections.abc import Callable

import pytest

from tests.chaos import mutants
from tests.chaos.bench import Bench
from tests.chaos.cell import run_cell
from tests.chaos.columns import COLUMNS
from tests.chaos.matrix import flow_of, undisturbed

KILLED_AFTER_ACT, HUNG, LATE = "stewardd killed after an act", "slurmctld hung", "provider acts, answers too late"
KILLED_BEFORE_ACT = "stewardd killed before an act"
MUTANTS = [
    (mutants.acts_before_it_commits, "rolling update", "drain", KILLED_AFTER_ACT),
    (mutants.forgets_its_memory, "scale up", "provision", KILLED_AFTER_ACT),
    (mutants.launches_without_a_token, "case", "launch", LATE),
    (mutants.takes_an_old_picture_for_fresh, "requeue", "node dies", HUNG),
    (mutants.undoes_foreign_drains, "case", "drain", KILLED_BEFORE_ACT),
    (mutants.never_answers, "resume in place", "shim asks", KILLED_BEFORE_ACT),
    (mutants.always_says_stop, "resume in place", "shim asks", KILLED_BEFORE_ACT),
    (mutants.never_gives_back, "case", "verify", KILLED_AFTER_ACT),
    (mutants.goes_on_with_times_of_the_future, "resume in place", "node dies", "clock -1 h"),
    (mutants.goes_on_with_times_of_the_future, "case", "launch", "clock -1 h"),
    (mutants.never_launches, "scale up", "asked for", LATE),
]


@pytest.mark.long
@pytest.mark.parametrize(("mutant", "flow", "step", "column"), MUTANTS, ids=lambda v: getattr(v, "__name__", None))
def test_a_head_that_breaks_a_rule_makes_the_matrix_red(
    mutant: Callable[[Bench], Bench], flow: str, step: str, column: str
) -> None:
    fault = next(one for one in COLUMNS if one.name == column)
    control = undisturbed(flow)
    assert run_cell(flow_of(flow), step, fault, control).broken == ()
    assert run_cell(flow_of(flow), step, fault, control, mutant).broken != ()
