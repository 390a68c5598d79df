"""Deep checks over HTTP."""

import math
from dataclasses import replace

import pytest

from steward.client import HeadError
from steward.model.deep import DeepReport, DeepResult, DeepState, Measure
from steward.model.health import Outcome
from tests.builders.deep import a_run, done, with_run
from tests.builders.picture import Picture, a_cluster, n
from tests.fakes.api_bench import ApiBench

NUMBERLESS = Measure(check="gpu.gemm", node=n("n1"), outcome=Outcome.SKIPPED, value=math.nan, unit="")


def running() -> Picture:
    run = a_run("n1", state=DeepState.RUNNING)
    report = DeepReport(run=run.token, node=n("n1"), measures=(NUMBERLESS,), progress="memory")
    return with_run(a_cluster(), run).agent("n1", deep=(report,))


def test_an_admin_asks_and_finds_the_check_in_the_list(api: ApiBench) -> None:
    api.show(a_cluster())
    answer = api.client().check_deep("n[1-2]", ("InstanceStress",))

    (run,) = api.store.memory.deeps.values()
    assert answer["runs"] == [run.id]
    assert run.nodes == {n("n1"), n("n2")}


def test_an_ordinary_user_asks_for_nothing(api: ApiBench) -> None:
    api.show(a_cluster())
    with pytest.raises(HeadError, match="may not do this"):
        api.client(uid=1000).check_deep("n1", ())
    assert api.store.memory.deeps == {}


@pytest.mark.parametrize(("nodes", "says"), [("n99", "no node n99"), ("n[1-", "not a host list")])
def test_what_there_is_not_is_refused_in_one_line(api: ApiBench, nodes: str, says: str) -> None:
    api.show(a_cluster())
    with pytest.raises(HeadError, match=says):
        api.client().check_deep(nodes, ())


def test_how_far_each_node_is_can_be_read_while_it_runs(api: ApiBench) -> None:
    api.show(running())
    (found,) = api.client().array("/v1/checks/deep")
    assert found["nodes"]["n1"] == {"result": None, "why": "", "progress": "memory"}


def test_measures_are_shown_while_it_runs_and_one_without_a_number_too(api: ApiBench) -> None:
    api.show(running())
    (measure,) = api.client().deep("d1")["measures"]
    assert (measure["check"], measure["value"]) == ("gpu.gemm", None)


def test_results_are_shown_with_what_they_rest_on(api: ApiBench) -> None:
    run = replace(done(DeepResult.FAILED, "n1"), measures=(NUMBERLESS,))
    api.show(with_run(a_cluster(), run))
    found = api.client().deep("d1")
    assert found["nodes"]["n1"]["result"] == "Failed"
    assert "a bit flipped" in found["nodes"]["n1"]["why"]


def test_a_check_that_there_is_not_is_not_found(api: ApiBench) -> None:
    api.show(a_cluster())
    with pytest.raises(HeadError, match="there is no deep check d9"):
        api.client().deep("d9")
