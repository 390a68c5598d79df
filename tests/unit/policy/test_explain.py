"""`explain` tells people what is known, what was decided and why; hostile text stays text on one line."""

from dataclasses import replace

import pytest

from steward.model.ask import AskKind
from steward.model.ids import JobId
from steward.policy.controls import pause
from steward.policy.explain import explain_job, explain_node
from tests.builders.picture import Picture, a_cluster, n


def of_node(picture: Picture, name: str) -> str:
    return "\n".join(explain_node(n(name), picture.seen, picture.want, picture.memory, picture.now))


def of_job(picture: Picture, id: int = 7) -> str:
    return "\n".join(explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now))


def test_a_healthy_node_has_nothing_against_it() -> None:
    assert "Nothing speaks against it" in of_node(a_cluster(), "n2")


def test_a_dead_node_shows_its_case_the_evidence_and_what_comes_next() -> None:
    text = of_node(a_cluster().lost("n2").then(3), "n2")
    for part in ("Case c1-", "second witness", "refused", "step drain", "Slurm shows the node out of service"):
        assert part in text


def test_a_node_that_waits_for_its_turn_says_for_whom() -> None:
    picture = a_cluster().lost("n2", "n5").then().marked("n2").marked("n5").then(1)
    assert "waits for its turn: 1 of at most 1 repairs run (n2)" in of_node(picture, "n5")


def test_an_admins_drain_is_called_somebody_elses() -> None:
    assert "Taken out of service by somebody else" in of_node(a_cluster().drained("n2", "fan"), "n2")


@pytest.mark.parametrize("kind", ["paused", "report"])
def test_what_is_withheld_is_explained(kind: str) -> None:
    picture = a_cluster(act=kind != "report").lost("n2")
    picture = replace(picture, memory=pause(picture.memory)) if kind == "paused" else picture
    assert f"Nothing is done about it: {'actions are paused' if kind == 'paused' else 'repairs are set'}" in of_node(
        picture, "n2"
    )


def test_hostile_text_is_shown_as_text_on_one_line() -> None:
    lines = explain_node(
        n("n2"),
        a_cluster().drained("n2", "$(reboot)\n\x1b[31mfake line" + "x" * 9000).seen,
        a_cluster().want,
        a_cluster().memory,
        a_cluster().now,
    )
    assert any("$(reboot)" in line for line in lines)
    assert all(line.isprintable() and len(line) <= 500 for line in lines)


def test_a_users_own_bug_is_explained() -> None:
    picture = a_cluster().job().opted_in().then().ask(AskKind.BATCH).then(0.1).checked("n1", "n2", "n3").then(60)
    text = of_job(picture)
    assert "not resumed: nothing speaks for a fault of the machines" in text
    assert "[resume.no_evidence]" in text


def test_a_resumed_job_names_the_culprit_and_the_evidence() -> None:
    text = of_job(a_cluster().job().opted_in().then().lost("n2").then().marked("n2").requeued().then(5))
    for part in ("requeued", "because n2:", "kept off n2", "waits to run again"):
        assert part in text


def test_a_job_without_the_option_is_said_to_be_left_alone() -> None:
    assert "never touches it" in of_job(a_cluster().job())


def test_explaining_changes_nothing() -> None:
    picture = a_cluster().lost("n1", "n2", "n3")
    before = picture.memory
    of_node(picture, "n1")
    assert picture.memory == before
