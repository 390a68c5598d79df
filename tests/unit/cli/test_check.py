"""`steward check deep`, `list` and `show`: what a person asks for and sees."""

import json

from steward.model.deep import DeepResult
from tests.builders.cli import steward
from tests.builders.deep import done, with_run
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench


def test_without_any_the_list_says_how_to_ask(api: ApiBench) -> None:
    api.show(a_cluster())
    assert "steward check deep NODES" in steward(api, "check", "list").output


def test_the_list_counts_the_results(api: ApiBench) -> None:
    api.show(with_run(a_cluster(), done(DeepResult.PASSED, "n1", "n2")))
    assert "2 (2 Passed)" in steward(api, "check", "list").output
    assert json.loads(steward(api, "--json", "check", "list").output)[0]["id"] == "d1"


def test_one_check_is_shown_with_each_node(api: ApiBench) -> None:
    api.show(with_run(a_cluster(), done(DeepResult.FAILED, "n1")))
    shown = steward(api, "check", "show", "d1").output
    assert "Failed" in shown
    assert "Nothing was measured yet." in shown


def test_what_is_no_list_of_nodes_is_said_before_the_head_is_asked(api: ApiBench) -> None:
    refused = steward(api, "check", "deep", "n[1-")
    assert refused.exit_code == 1
    assert "write for example n[1-6]" in refused.output


def test_a_list_that_the_head_would_cut_is_not_sent(api: ApiBench) -> None:
    refused = steward(api, "check", "deep", *(f"node{i}x{i}" for i in range(100)))
    assert refused.exit_code == 1
    assert "ask in parts" in refused.output
