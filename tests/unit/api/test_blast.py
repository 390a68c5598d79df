"""Breakers and trials of checks over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from steward.client import HeadError
from steward.model.health import Trial, TrialState
from steward.model.memory import Breaker
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench

BREAKER = Breaker(scope="all", tripped=100.0, text="too many", patience_s=60.0)
TRIAL = Trial(check="site.fabric", version="abc", since=50.0, state=TrialState.REFUSED, text="failed on 3 of 5")


def remembering(api: ApiBench, **fields: Any) -> None:
    picture = a_cluster()
    api.show(replace(picture, memory=replace(picture.memory, **fields)))


def test_a_tripped_breaker_is_listed_with_when_it_lets_a_first_repair_through(api: ApiBench) -> None:
    remembering(api, breakers={"all": BREAKER})
    assert [(one["scope"], one["next_try"]) for one in api.client().array("/v1/breakers")] == [("all", 160.0)]


def test_an_admin_resets_a_breaker_and_one_that_is_not_tripped_is_refused(api: ApiBench) -> None:
    remembering(api, breakers={"all": BREAKER})
    with pytest.raises(HeadError, match="breaker group:x is not tripped"):
        api.client().reset_breakers("group:x")
    assert api.client().reset_breakers("all")["done"]
    assert api.store.memory.breakers == {}


def test_an_ordinary_user_resets_nothing(api: ApiBench) -> None:
    remembering(api, breakers={"all": BREAKER})
    with pytest.raises(HeadError, match="may not do this"):
        api.client(uid=1000).reset_breakers()


def test_an_admin_arms_a_check_that_was_refused_and_disarms_it_again(api: ApiBench) -> None:
    remembering(api, trials={"site.fabric@abc": TRIAL})
    assert api.client().array("/v1/checks/trials")[0]["state"] == "refused"
    api.client().arm_check("site.fabric", armed=True)
    armed = api.store.memory.trials["site.fabric@abc"]
    assert (armed.state, armed.text) == (TrialState.ARMED, "armed by root")
    api.client().arm_check("site.fabric", armed=False)
    disarmed = api.store.memory.trials["site.fabric@abc"]
    assert disarmed.state is TrialState.REFUSED


def test_a_check_that_never_changes_cannot_be_armed(api: ApiBench) -> None:
    remembering(api)
    with pytest.raises(HeadError, match=r"no version of disk was seen .*its table of \[checks\]"):
        api.client().arm_check("disk", armed=True)
