"""What the API says of several heads, and the handover from one to another."""

from collections.abc import Iterator
from typing import Any

import pytest

from steward.client import HeadError
from steward.model.leadership import Heads, OtherHead
from tests.fakes.api_bench import ApiBench, an_api

READY = OtherHead(name="head2:6861", is_heard=True, picture_s=12.0, trouble="", version="1.0")
AWAY = OtherHead(name="head2:6861", is_heard=False, picture_s=None, trouble="", version="")


def _heads(*others: OtherHead) -> Heads:
    return Heads(leader="head1:6861", epoch=7, since=5.0, is_beside_slurmctld=True, trouble="", others=others)


@pytest.fixture
def api() -> Iterator[ApiBench]:
    with an_api() as bench:
        yield bench


def test_the_status_of_a_head_alone_names_no_heads(api: ApiBench) -> None:
    assert api.client().object("/v1/status")["heads"] is None


def test_the_status_names_the_leader_and_whether_another_could_take_over(api: ApiBench) -> None:
    api.heads = _heads(READY)
    found: dict[str, Any] = api.client().object("/v1/status")["heads"]

    assert (found["leader"], found["epoch"]) == ("head1:6861", 7)
    assert [(other["name"], other["why_not"], other["picture_s"]) for other in found["others"]] == [
        ("head2:6861", "", 12.0)
    ]


def test_an_admin_hands_over_to_a_head_that_could_take_over(api: ApiBench) -> None:
    api.heads = _heads(READY)
    answer = api.client().hand_over()

    assert answer["to"] == ["head2:6861"]
    assert api.handed_over == ["root asked for it"]


def test_a_handover_that_would_leave_no_head_is_refused_with_the_reason(api: ApiBench) -> None:
    api.heads = _heads(AWAY)
    with pytest.raises(HeadError, match="no other head could take over now: head2:6861: it is not heard"):
        api.client().hand_over()
    api.heads = None
    with pytest.raises(HeadError, match="this head has no other"):
        api.client().hand_over()

    assert api.handed_over == []


def test_only_an_admin_hands_over(api: ApiBench) -> None:
    api.heads = _heads(READY)
    with pytest.raises(HeadError):
        api.client(uid=1000).hand_over()

    assert api.handed_over == []
