"""`steward breaker list`, `steward check trials` and the mode: what a person sees of the blast radius."""

import json
from dataclasses import replace
from typing import Any

from steward.model.health import Trial
from steward.model.memory import Breaker
from steward.model.repair_policy import RepairPolicy
from steward.model.setting_types import RepairMode
from tests.builders.cli import steward
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench, an_api

BREAKER = Breaker(scope="check:disk", tripped=100.0, text="breaker check:disk: 3 nodes")
TRIAL = Trial(check="site.fabric", version="abcdef", since=50.0, text="0 of 3 nodes failed")


def remembering(api: ApiBench, **fields: Any) -> None:
    picture = a_cluster()
    api.show(replace(picture, memory=replace(picture.memory, **fields)))


def test_without_a_tripped_breaker_the_list_says_so(api: ApiBench) -> None:
    remembering(api)
    assert "No breaker is tripped." in steward(api, "breaker", "list").output


def test_a_tripped_breaker_is_listed_with_its_why(api: ApiBench) -> None:
    remembering(api, breakers={"check:disk": BREAKER})
    assert "breaker check:disk: 3 nodes" in steward(api, "breaker", "list").output
    assert json.loads(steward(api, "--json", "breaker", "list").output)[0]["scope"] == "check:disk"


def test_a_check_on_trial_is_listed_with_the_arithmetic(api: ApiBench) -> None:
    remembering(api, trials={"site.fabric@abcdef": TRIAL})
    assert "on trial" in steward(api, "check", "trials").output
    assert "0 of 3 nodes failed" in steward(api, "check", "trials").output


def test_the_status_names_how_to_leave_report_only() -> None:
    want = replace(a_cluster().want, repair=RepairPolicy(mode=RepairMode.REPORT))
    with an_api(ApiBench(want=want)) as api:
        remembering(api)
        assert 'set repair.mode = "ask" or "act"' in steward(api, "status").output
