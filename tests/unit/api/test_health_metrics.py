"""What Prometheus gets of checks, breakers, deep checks and repairs, as the text that it reads."""

import re
from dataclasses import replace

import pytest

from steward.api.health_metrics import MOST_NAMES
from steward.model.case import CaseStep
from steward.model.deep import DeepCause, DeepKind, DeepRun, DeepState
from steward.model.health import Finding, Outcome, Severity
from steward.model.memory import Breaker
from tests.builders.picture import T0, Picture, a_cluster, names
from tests.fakes.api_bench import ApiBench

BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="full")
NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"{NAME}(?:{{{LABEL}(?:,{LABEL})*}})? (?:[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|NaN|[+-]Inf)$")
COMMENT = re.compile(rf"# (?:HELP {NAME} .+|TYPE {NAME} (?:counter|gauge|histogram|summary|untyped))$")


def lines(*story: Picture) -> list[str]:
    bench = ApiBench()
    for picture in story:
        bench.show(picture)
    return bench.metrics.text().decode().splitlines()


def ended(**fields: object) -> list[str]:
    """What is counted of a repair that comes to such an end."""
    picture = a_cluster().lost("n2").then().marked("n2").then(1)
    bench = ApiBench()
    bench.show(picture)
    assert bench.latest is not None
    (case,) = picture.memory.cases.values()
    after = replace(picture.memory, cases={case.id: replace(case, **fields)})  # type: ignore[arg-type]
    over = replace(bench.latest, before=picture.memory, memory=after)
    bench.metrics.watch(over)
    bench.metrics.watch(replace(over, before=after))
    return [line for line in bench.metrics.text().decode().splitlines() if line.startswith("steward_repairs_total")]


def test_each_check_has_its_outcomes_and_severities() -> None:
    picture = a_cluster(3).agent("n1", passed=frozenset({"disk"})).agent("n2", findings=(BAD,))
    picture = picture.agent("n3", skipped=frozenset({"disk"}))
    found = lines(picture)
    for outcome, count in (("passed", 1), ("failed", 1), ("unknown", 0), ("skipped", 1)):
        assert f'steward_check_results{{check="disk",outcome="{outcome}"}} {count}.0' in found
    assert 'steward_findings{check="disk",severity="degraded"} 1.0' in found
    assert 'steward_findings{check="disk",severity="fatal"} 0.0' in found


def test_a_check_that_nobody_tells_of_any_more_leaves_nothing() -> None:
    bad = a_cluster(2).agent("n2", findings=(BAD,))
    assert not [line for line in lines(bad, a_cluster(2)) if 'check="disk"' in line]


def test_every_verdict_is_counted_also_those_of_no_node() -> None:
    found = lines(a_cluster(3).drained("n1", "fan"))
    assert 'steward_node_verdicts{verdict="foreign"} 1.0' in found
    assert 'steward_node_verdicts{verdict="fine"} 2.0' in found
    assert 'steward_node_verdicts{verdict="lost"} 0.0' in found


def test_names_that_agents_make_up_are_bounded() -> None:
    made_up = frozenset(f"site.{number:05d}" for number in range(2 * MOST_NAMES))
    found = [
        line for line in lines(a_cluster(1).agent("n1", passed=made_up)) if line.startswith("steward_check_results{")
    ]
    assert len(found) == 4 * (MOST_NAMES + 1)
    assert f'steward_check_results{{check="other",outcome="passed"}} {MOST_NAMES}.0' in found


def test_a_fault_of_many_nodes_is_one_open_incident() -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3"):
        picture = picture.failing(name, Severity.DEGRADED, check="disk")
    assert "steward_incidents_open 1.0" in lines(picture)


def test_breakers_incidents_and_deep_checks_are_gauges() -> None:
    run = DeepRun(
        id="d1",
        cause=DeepCause.ASKED,
        who="root",
        kinds=frozenset({DeepKind.STRESS}),
        nodes=names("n2"),
        asked=T0,
        state=DeepState.WAITING,
    )
    picture = a_cluster()
    memory = replace(
        picture.memory,
        breakers={"check:disk": Breaker(scope="check:disk", tripped=T0, text="many")},
        deeps={"d1": run},
    )
    found = lines(replace(picture, memory=memory))
    assert 'steward_breaker_tripped{scope="check:disk"} 1.0' in found
    assert "steward_incidents_open 0.0" in found
    assert 'steward_deep_runs{state="waiting"} 1.0' in found
    assert 'steward_deep_runs{state="running"} 0.0' in found


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"step": CaseStep.CLOSED, "returned": T0 + 60}, "returned"),
        ({"step": CaseStep.CLOSED}, "called_off"),
        ({"step": CaseStep.HELD}, "held"),
        ({"step": CaseStep.HELD, "stand_in": "n9"}, "stood_in"),
    ],
)
def test_a_repair_counts_once_by_its_rung_and_how_it_ended(fields: dict[str, object], result: str) -> None:
    assert ended(**fields) == [f'steward_repairs_total{{result="{result}",rung="replace"}} 1.0']


def test_a_repair_that_goes_on_is_not_counted() -> None:
    assert ended(step=CaseStep.VERIFY) == []


def test_every_line_is_one_that_prometheus_reads_whatever_names_agents_send() -> None:
    hostile = replace(BAD, check='x"} 9\n# TYPE evil\\')
    text = lines(a_cluster(2).agent("n2", findings=(BAD, hostile)).lost("n1"))
    assert [line for line in text if not (SAMPLE.match(line) or COMMENT.match(line))] == []
    named = [line.split()[2] for line in text if line.startswith("# TYPE ")]
    assert len(named) == len(set(named))
    samples = [line.rpartition(" ")[0] for line in text if not line.startswith("#")]
    assert len(samples) == len(set(samples))
