"""Every sentence about a node, a group or a deep check has its two cases in the rows of the files beside this one."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.builders.sentences import ROOT, Row, lacking
from tests.unit.policy.sentences import test_cases as cases
from tests.unit.policy.sentences import test_events as events
from tests.unit.policy.sentences import test_groups as groups
from tests.unit.policy.sentences import test_guards as guards
from tests.unit.policy.sentences import test_nodes as nodes
from tests.unit.policy.sentences import test_reasons as reasons

OF_NODES = [*nodes.ROWS, *cases.ROWS, *guards.ROWS, *reasons.ROWS]
_OF_JOBS = (
    "explain_job|job_lines|job_warning|_OF_A_RUN|_ENDED_UNSEEN|_not_asked|_stale|_known_of_job|_shown_id|_restarts"
    "|_next_of_job|_waiting|place_lines|_DID|_IN_PLACE|resume_lines|_asked|_step|_left_behind|_progress|_attempt"
    "|_lame_steps|silence_lines|_left_alone|hurry|_undecided"
)
_OF_SLOTS = "next_of_slot|_OF_SLOTS|setup_failure|_verify"
_NEVER_SAID = "Word|DeepStart|_HEAD"
_OTHERS = ("bring_up.py", "told_to_save.py", "standing_still.py", "booted.py")
"""These speak of groups and jobs."""
_FILES = "_HEAD|_partition|page|_NO_LIMIT"
"""Texts of files that Steward writes."""


def pairs(rows: Sequence[Row], said: Callable[[Any], str]) -> list[tuple[str, str]]:
    return [(said(true()), said(false())) for _, true, false in rows]


def test_every_sentence_about_a_node_has_its_two_cases() -> None:
    views = [ROOT / f"views/{name}.py" for name in ("explain", "explain_health", "node_verdict", "awaited")]
    rooms = [path for room in ("facts", "case", "guards") for path in sorted((ROOT / "policy" / room).glob("*.py"))]
    paths = [path for path in (*views, *rooms, ROOT / "policy/leaks.py") if path.name not in _OTHERS]
    assert lacking(paths, f"{_OF_JOBS}|{_OF_SLOTS}|{_NEVER_SAID}", pairs(OF_NODES, nodes.said)) == []


@pytest.mark.parametrize("room", ["groups", "deep"])
def test_every_sentence_of_groups_and_deep_checks_has_its_two_cases(room: str) -> None:
    rows = [*pairs(events.ROWS, events.said), *pairs(groups.ROWS, groups.said), *pairs(OF_NODES, nodes.said)]
    assert lacking(sorted((ROOT / "policy" / room).glob("*.py")), _FILES, rows) == []
