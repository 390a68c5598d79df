"""What the API says of several heads, and the handover from one to another."""

from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

import pytest
import requests

from steward.api.metrics import FIGURES
from steward.client import HeadError
from steward.model.leadership import Heads, OtherHead
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.until import FACT_S

READY = OtherHead(name="head2:6861", is_heard=True, picture_s=12.0, trouble="", version="1.0")
AWAY = OtherHead(name="head2:6861", is_heard=False, picture_s=None, trouble="", version="")


def _heads(*others: OtherHead) -> Heads:
    return Heads(
        is_mine=True,
        picture_s=None,
        leader="head1:6861",
        epoch=7,
        since=5.0,
        is_beside_slurmctld=True,
        trouble="",
        others=others,
    )


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


def test_the_page_names_the_leader_and_a_head_that_could_not_take_over(api: ApiBench) -> None:
    api.show(a_cluster())
    api.heads = _heads(READY)
    calm = requests.get(api.url, timeout=FACT_S).text
    api.show(a_cluster())
    api.heads = _heads(AWAY)
    told = requests.get(api.url, timeout=FACT_S).text

    assert "<b>head1:6861</b> leads" in calm
    assert "could not take over" not in calm
    assert "head2:6861 could not take over now: it is not heard" in told


def test_a_leader_tells_prometheus_whether_another_head_could_take_over(api: ApiBench) -> None:
    api.heads = _heads(READY)
    assert (
        _figures(api) >= {"steward_head_leads": 1.0, "steward_head_epoch": 7.0, "steward_head_successors": 1.0}.items()
    )
    api.heads = _heads(AWAY)
    found = dict(_figures(api))

    assert (found["steward_head_successors"], found["steward_standstill_seconds"]) == (0.0, 0.0)


def test_a_follower_tells_prometheus_what_it_knows_itself_and_nothing_of_the_cluster(api: ApiBench) -> None:
    """The cluster's figures are the leader's: told by both, each would be counted twice."""
    api.heads = replace(_heads(), is_mine=False, picture_s=12.0, trouble="no answer")

    assert dict(_figures(api)) == {
        "steward_head_leads": 0.0,
        "steward_head_epoch": 7.0,
        "steward_head_lease_reachable": 0.0,
        "steward_head_picture_age_seconds": 12.0,
    }


def _figures(api: ApiBench) -> Set[tuple[str, float]]:
    """Those without labels."""
    lines = requests.get(f"{api.url}{FIGURES}", timeout=FACT_S).text.splitlines()
    words = (line.split() for line in lines if not line.startswith("#") and "{" not in line)
    return {(name, float(value)) for name, value in words}


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
