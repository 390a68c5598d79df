"""`steward lemons`: hardware that fails again and again, with the arithmetic."""

import json
from dataclasses import replace

from steward.model.case import Remedy
from steward.model.health import Advice
from steward.model.ids import CaseId
from tests.builders.cli import steward
from tests.builders.picture import T0, a_cluster, n
from tests.fakes.api_bench import ApiBench


def remembering(api: ApiBench, **pieces: int) -> None:
    """So many replacements of each piece."""
    remedies = {
        piece: tuple(
            Remedy(at=T0, rung=Advice.REPLACE, node=n("n2"), instance=None, case=CaseId(f"c{i}"), check="xid")
            for i in range(count)
        )
        for piece, count in pieces.items()
    }
    picture = a_cluster()
    api.show(replace(picture, memory=replace(picture.memory, remedies=remedies)))


def test_without_a_score_the_list_says_so(api: ApiBench) -> None:
    remembering(api)
    assert "No hardware has a score." in steward(api, "lemons").output


def test_the_worst_is_shown_with_its_arithmetic_and_the_rest_on_request(api: ApiBench) -> None:
    remembering(api, board1=2, board2=1)
    shown = steward(api, "lemons").output
    assert "quarantine?" in shown
    assert "5.0 (case c0: replace for xid) + 5.0 (case c1: replace for xid)" in shown
    assert "board2" not in shown
    assert "1 more have a score" in shown
    assert "board2" in steward(api, "lemons", "--all").output


def test_json_has_every_piece(api: ApiBench) -> None:
    remembering(api, board1=2, board2=1)
    found = json.loads(steward(api, "lemons", "--json").output)
    assert [(one["piece"], one["score"], one["is_candidate"]) for one in found] == [
        ("board1", 10.0, True),
        ("board2", 5.0, False),
    ]
    assert sum(part["points"] for part in found[0]["parts"]) == found[0]["score"]
