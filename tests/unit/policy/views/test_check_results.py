"""What each check says over the cluster."""

from steward.model.health import Finding, Outcome, Severity
from steward.views.explain_health import check_results
from tests.builders.picture import a_cluster, n

QUIET = {"passed": frozenset({"disk", "memory"}), "skipped": frozenset({"gpu"})}
BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="full")


def test_each_outcome_is_counted_and_bad_ones_name_their_node() -> None:
    lost = Finding(check="memory", outcome=Outcome.UNKNOWN, text="timed out")
    picture = a_cluster(3).agent("n1", **QUIET).agent("n2", **QUIET)
    picture = picture.agent("n3", findings=(BAD, lost), skipped=frozenset({"gpu"}))
    found = check_results(picture.seen.agents)
    assert list(found) == ["disk", "gpu", "memory"]
    assert (found["disk"].passed, found["disk"].failed) == (2, {n("n3"): BAD})
    assert (found["memory"].passed, found["memory"].unknown) == (2, {n("n3"): lost})
    assert found["gpu"].skipped == 3


def test_an_agent_that_is_gone_says_nothing() -> None:
    assert check_results(a_cluster(1).agent("n1", **QUIET).agent_lost("n1").seen.agents) == {}


def test_two_findings_of_one_check_count_its_node_once() -> None:
    picture = a_cluster(1).agent("n1", findings=(BAD, BAD))
    assert len(check_results(picture.seen.agents)["disk"].failed) == 1
