"""Who takes part in an elastic run: rounds form once, all save before a change, nobody waits for who may still come."""

import pytest

from steward.elastic.pace import (
    FINISH_S,
    GATHER_S,
    LOST_S,
    MOST_ALONE,
    PATIENCE_S,
    RESTORE_S,
    START_S,
    VERDICT_S,
    WAITING_S,
)
from steward.elastic.peer import Peer
from steward.elastic.server import word_of
from tests.builders.elastic_rounds import Story


def test_the_first_round_is_the_bases_and_forms_once_when_its_last_node_came() -> None:
    story = Story()

    story.come("n3", role="replica")
    story.come("n2")
    assert (story.run.state, story.forms) == ("waiting", [])
    assert story.run.why == "1 of at least 2 nodes have joined: waiting for more"
    story.come("n1")

    assert [(node, form["rank"]) for node, form in story.forms] == [("n1", 0), ("n2", 1)]
    assert {form["address"] for _, form in story.forms} == {"n1"}, (
        "the batch host is the first, and it stays to the end"
    )


def test_all_ranks_save_before_the_run_grows_and_the_new_nodes_come_in_one_round() -> None:
    story = Story()
    story.come("n1", "n2")
    story.come("n3", "n4", role="replica")
    story.say("n1", "step")

    story.order("n1", "n2", "n3", "n4")
    assert [line for line in story.told if "asked" in line[1]] == [("n1", {"asked": 1}), ("n2", {"asked": 1})]
    story.save("n1")
    assert story.shape() == ("saving", 1, ("n1", "n2"))
    story.now += 2
    story.save("n2")

    assert story.shape() == ("forming", 2, ("n1", "n2", "n3", "n4"))
    assert [form["rank"] for _, form in story.forms[2:]] == [0, 1, 2, 3]
    assert (story.run.saved_step, story.run.consumed, story.run.saved_s) == (7, 70, 2)


def test_new_nodes_are_let_in_by_an_order_only() -> None:
    story = Story()
    story.come("n1", "n2")
    story.say("n1", "step")

    story.come("n3", role="replica")
    story.pass_(1000)

    assert story.shape() == ("running", 1, ("n1", "n2"))


def test_an_order_that_is_not_newer_is_old() -> None:
    story = Story().grown()

    story.order("n1", "n2", generation=2)

    assert story.shape() == ("running", 2, ("n1", "n2", "n3", "n4"))


def test_the_generation_of_an_order_is_taken() -> None:
    story = Story().grown()

    story.order("n1", "n2", generation=9, grace_s=0)

    assert story.shape() == ("forming", 9, ("n1", "n2"))


def test_a_node_that_is_to_be_given_back_leaves_after_the_save_without_an_order() -> None:
    story = Story().grown()

    story.run.notice("n4", story.now)
    story.hear()
    assert story.run.state == "saving"
    story.save("n1", "n2", "n3", "n4")

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))
    assert ("n4", {"leave": True}) in story.told


def test_two_nodes_that_leave_are_one_change() -> None:
    story = Story().grown()

    story.run.notice("n4", story.now)
    story.run.notice("n3", story.now)
    story.save("n1", "n2", "n3", "n4")

    assert story.shape() == ("forming", 3, ("n1", "n2"))


def test_a_rank_that_never_saves_is_not_waited_for_longer_than_the_grace() -> None:
    story = Story(grace_s=30).grown()
    story.run.notice("n4", story.now)
    story.save("n1", "n2", "n4")

    story.pass_(29)
    assert story.run.state == "saving"
    story.pass_(1)

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))
    assert story.run.why == "n3 did not save in time: went on without"


def ready_to_grow() -> Story:
    """Two nodes train, a third one waits to be let in."""
    story = Story(grace_s=10)
    story.come("n1", "n2")
    story.come("n3", role="replica")
    story.say("n1", "step")
    return story


def test_a_growth_that_nothing_presses_waits_for_the_save() -> None:
    story = ready_to_grow()
    story.order("n1", "n2", "n3", patient=True)
    story.say("n1", "noticed")
    story.say("n2", "noticed")

    story.pass_(600)
    assert (story.run.state, word_of(story.run)["begins_to_save"]) == ("saving", True)
    story.save("n1", "n2")

    assert story.shape() == ("forming", 2, ("n1", "n2", "n3"))
    assert story.run.unsaved == ()


def test_a_growth_is_called_off_at_no_cost_while_no_rank_has_begun_to_save() -> None:
    """An evaluation of many minutes, or a loop that never asks."""
    story = ready_to_grow()
    story.order("n1", "n2", "n3", patient=True)
    story.order("n1", "n2", generation=2, patient=True)

    assert story.shape() == ("running", 1, ("n1", "n2"))
    assert [line for line in story.told if "unasked" in line[1]] == [("n1", {"unasked": 1}), ("n2", {"unasked": 1})]
    story.order("n1", "n2", "n3", patient=True, generation=3)
    story.save("n1", "n2")
    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))


def test_who_has_begun_to_save_is_waited_for_though_the_growth_is_not_wanted_any_more() -> None:
    story = ready_to_grow()
    story.order("n1", "n2", "n3", patient=True)
    story.say("n1", "noticed")
    story.order("n1", "n2", generation=2, patient=True)
    story.pass_(100)
    assert story.run.state == "saving"
    story.save("n1", "n2")
    assert story.shape() == ("forming", 2, ("n1", "n2"))


def test_without_a_head_a_growth_that_no_rank_answers_is_called_off_some_day() -> None:
    story = ready_to_grow()
    story.order("n1", "n2", "n3", patient=True)
    story.pass_(PATIENCE_S)
    assert story.shape() == ("running", 1, ("n1", "n2"))


def test_a_node_that_has_to_leave_presses_a_growth_that_waits() -> None:
    story = Story(grace_s=10).grown()
    story.come("n5", role="replica")
    story.order("n1", "n2", "n3", patient=True)
    story.run.notice("n4", story.now)
    story.pass_(10)
    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))
    assert story.run.unsaved == ("n1", "n2", "n3", "n4")


def test_a_save_that_took_longer_than_the_grace_is_waited_for_when_a_node_leaves() -> None:
    story = Story(grace_s=10).grown()
    story.order("n1", "n2", "n3", patient=True)
    story.now += 20
    story.save("n1", "n2", "n3", "n4")
    story.say("n1", "step")
    story.run.notice("n3", story.now)
    story.pass_(25)
    assert story.run.state == "saving"
    story.pass_(5)
    assert story.shape()[0] == "forming"


def test_a_program_that_never_asks_is_stopped_for_a_growth_only_where_its_user_allows_it() -> None:
    story = Story(grace_s=10)
    story.come("n1", "n2")
    story.come("n3", role="replica")
    story.say("n1", "started", stoppable=True)
    assert word_of(story.run)["state"] == "forming", "n2 has not said so yet: nobody is told that the run cannot grow"
    story.pass_(START_S)
    assert word_of(story.run)["steerable"] is False
    story.say("n2", "started", stoppable=True)
    assert word_of(story.run)["steerable"] is True
    story.order("n1", "n2", "n3", patient=True, grace_s=10)
    story.pass_(10)
    assert story.shape() == ("forming", 2, ("n1", "n2", "n3"))


def test_what_a_forced_change_cost_is_known_at_the_first_step_after_it() -> None:
    story = Story(grace_s=10).grown()
    story.say("n1", "step", step=10)
    story.now += 40
    story.say("n1", "step", step=30)
    story.run.notice("n4", story.now)
    story.pass_(10)
    assert word_of(story.run)["again"] is None
    story.say("n1", "step", step=21)
    word = word_of(story.run)
    assert (word["again"], word["timings"]["again_s"]) == (10, pytest.approx(20, rel=0.15))


def test_hyperpods_pattern_is_a_save_too_and_no_end_of_the_training() -> None:
    story = Story()
    story.come("n1", "n2")
    story.come("n3", role="replica")
    story.say("n1", "step")
    story.order("n1", "n2", "n3")

    for node in ("n1", "n2"):
        story.say(node, "noticed")
        story.run.handle_end(node, "done", story.now)
        story.hear()

    assert story.shape() == ("forming", 2, ("n1", "n2", "n3"))


def test_a_lost_node_and_the_failures_that_it_brings_are_one_smaller_round() -> None:
    story = Story().grown()

    story.run.handle_end("n1", "failed", story.now)
    story.run.handle_end("n2", "failed", story.now)
    story.run.lost("n4", story.now)
    story.pass_(LOST_S)

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))
    assert not [line for _, line in story.told if "verdict" in line]


def test_a_node_lost_while_all_save_does_not_hold_up_the_others() -> None:
    story = Story().grown()
    story.run.notice("n3", story.now)
    story.save("n1", "n2", "n3")
    story.run.lost("n4", story.now)

    story.pass_(LOST_S)

    assert story.shape() == ("forming", 3, ("n1", "n2"))


def test_processes_that_fail_with_all_nodes_there_fail_as_they_would_without_us() -> None:
    story = Story().grown()

    story.run.handle_end("n2", "failed", story.now)
    story.pass_(VERDICT_S)
    story.run.handle_end("n1", "failed", story.now)
    story.hear()

    assert [line for line in story.told if "verdict" in line[1]][:1] == [("n2", {"verdict": "failed"})]
    assert ("n1", {"verdict": "failed"}) in story.told


def test_processes_of_a_replica_that_fail_first_cost_the_run_that_replica_alone() -> None:
    story = Story().grown()

    story.run.handle_end("n3", "failed", story.now)
    story.run.handle_end("n1", "failed", story.now)  # its connection to n3 broke
    story.pass_(VERDICT_S)

    assert ("n3", {"leave": True}) in story.told
    assert story.shape() == ("forming", 3, ("n1", "n2", "n4"))
    assert not [line for _, line in story.told if "verdict" in line]
    story.order("n1", "n2", "n3", "n4")
    story.pass_(1)
    assert "n3" not in story.run.members


def test_a_training_that_is_done_ends() -> None:
    story = Story().grown()
    for node in ("n1", "n2", "n3", "n4"):
        story.run.handle_end(node, "done", story.now)
    story.hear()

    assert story.run.state == "done"
    assert {node for node, line in story.told if line == {"verdict": "done"}} == {"n1", "n2", "n3", "n4"}


def verdicts(story: Story) -> list[tuple[str, str]]:
    return [(node, line["verdict"]) for node, line in story.told if "verdict" in line]


def test_a_training_is_done_when_the_processes_of_its_last_node_are() -> None:
    """Others may write their part of the last checkpoint yet: their replica jobs must not be ended meanwhile."""
    story = Story().grown()
    for node in ("n1", "n2", "n3"):
        story.run.handle_end(node, "done", story.now)
    story.run.notice("n4", story.now)
    story.hear()
    assert (verdicts(story), word_of(story.run)["state"]) == ([], "running")
    assert ("n4", {"leave": True}) not in story.told, "its processes end by themselves"

    story.run.handle_end("n4", "done", story.now)
    story.hear()

    assert verdicts(story) == [(node, "done") for node in ("n1", "n2", "n3", "n4")]
    assert word_of(story.run)["state"] == "ended"


def test_a_node_that_is_lost_or_does_not_end_keeps_no_training_from_being_done() -> None:
    story = Story().grown()
    story.run.handle_end("n1", "done", story.now)
    story.run.lost("n4", story.now)
    story.pass_(FINISH_S - 1)
    assert verdicts(story) == []

    story.pass_(1)

    assert verdicts(story) == [("n1", "done")]
    story.run.handle_end("n2", "done", story.now)
    story.run.handle_end("n3", "failed", story.now)
    story.hear()
    assert word_of(story.run)["state"] == "ended"
    assert verdicts(story)[-1] == ("n3", "failed")


def test_a_new_coordinator_waits_for_those_who_come_back_before_the_training_is_done() -> None:
    story = begun_anew(Story().grown())
    come_back(story, "n1")
    story.run.handle_end("n1", "done", story.now)
    story.hear()
    assert word_of(story.run)["state"] == "running"

    story.pass_(RESTORE_S)

    assert word_of(story.run)["state"] == "ended"
    assert verdicts(story) == [("n1", "done")]


def test_a_second_training_of_the_same_script_is_the_bases_alone() -> None:
    """A replica's script runs its first training again, from its beginning: it must not take part in this one."""
    story = Story().grown()
    for node in ("n1", "n2", "n3", "n4"):
        story.run.handle_end(node, "done", story.now)
    for node in ("n1", "n2", "n3", "n4"):
        story.run.lost(node, story.now)
    story.hear()
    assert story.run.state == "waiting"

    story.come("n3", "n4", role="replica")
    assert story.told[-2:] == [("n3", {"leave": True}), ("n4", {"leave": True})]
    story.come("n1", "n2")

    assert story.shape() == ("forming", 3, ("n1", "n2"))
    story.say("n1", "step")
    story.come("n3", role="replica")
    story.order("n1", "n2", "n3")
    assert story.shape() == ("running", 3, ("n1", "n2"))


@pytest.mark.parametrize("how", ["done", "failed"])
def test_another_training_begins_though_a_replica_has_not_ended_the_one_before(how: str) -> None:
    story = Story().grown()
    for node in ("n1", "n2", "n4"):
        story.run.handle_end(node, how, story.now)
    story.pass_(FINISH_S)
    assert ("n1", {"verdict": how}) in story.told
    for node in ("n1", "n2", "n4"):
        story.run.lost(node, story.now)
    story.hear()
    story.told.clear()
    story.stuck.add("n3")
    story.come("n1")
    story.come("n2")
    assert story.told == [("n3", {"leave": True})]
    assert story.shape() == ("forming", 3, ("n1", "n2"))


def test_ranks_that_saved_do_not_wait_for_a_size_that_does_not_come() -> None:
    """Another one could not save: its disk was full."""
    story = Story().grown()
    story.order("n1", "n2")
    story.save("n1", "n3")
    story.run.handle_end("n2", "failed", story.now)
    story.pass_(VERDICT_S)
    assert ("n2", {"verdict": "failed"}) in story.told
    assert [node for node, line in story.told if "fail" in line] == ["n1", "n3"]
    story.save("n4")
    assert [node for node, line in story.told if "fail" in line] == ["n1", "n3", "n4"]


def test_a_run_that_lost_its_base_begins_at_once_where_others_of_the_base_wait_already() -> None:
    story = Story()
    story.run.generation, story.run.members, story.run.state = 5, ("n1", "n2", "n3"), "running"
    story.run.expect_all(story.now)
    story.come("n1", "n4")
    story.pass_(RESTORE_S)
    assert story.shape() == ("forming", 7, ("n1", "n4"))


def test_who_waits_to_be_let_in_when_the_training_is_done_goes() -> None:
    story = Story()
    story.come("n1", "n2")
    story.say("n1", "step")
    story.come("n3", role="replica")

    story.run.handle_end("n1", "done", story.now)
    story.hear()

    assert ("n3", {"leave": True}) in story.told


def test_fewer_than_the_base_wait_and_say_so_and_go_on_when_one_comes_back() -> None:
    story = Story(sizes=(2, 4))
    story.come("n1", "n2")
    story.say("n1", "step")
    story.run.lost("n2", story.now)

    story.pass_(LOST_S)
    assert story.run.state == "waiting"
    assert "1 of at least 2 nodes have joined" in story.run.why
    story.come("n2")

    assert (story.run.state, story.run.members) == ("forming", ("n1", "n2"))


def test_a_run_that_waits_too_long_for_its_base_fails_so_that_its_job_is_resumed() -> None:
    story = Story()
    story.come("n1", "n2")
    story.say("n1", "step")
    story.run.lost("n2", story.now)
    story.pass_(LOST_S)

    story.pass_(WAITING_S)

    assert story.told[-1] == ("n1", {"fail": "1 of at least 2 nodes have joined: waiting for more"})


def test_a_size_that_is_not_allowed_is_made_smaller() -> None:
    story = Story(sizes=(2, 4)).grown()

    story.run.lost("n3", story.now)
    story.pass_(LOST_S)

    assert story.run.members == ("n1", "n2")


def test_a_node_whose_processes_do_not_stop_is_left_behind() -> None:
    story = Story().grown()
    story.stuck.add("n3")
    story.order("n1", "n2", "n3", grace_s=0)
    assert story.run.target

    story.pass_(GATHER_S)

    assert (story.run.target, story.run.members) == ((), ("n1", "n2"))


def test_a_script_that_tells_nothing_of_its_steps_counts_as_running_after_a_while() -> None:
    story = Story()
    story.come("n1", "n2")

    story.pass_(START_S)

    assert story.run.state == "running"


def test_a_coordinator_that_begins_anew_takes_the_run_as_it_is() -> None:
    story = Story().grown()
    again = Story()
    again.run.generation, again.run.members, again.run.state = story.run.generation, story.run.members, "running"
    again.run.expect_all(again.now)
    for node, peer in story.run.peers.items():
        peer_again = Peer(node=node, is_base=peer.is_base, is_first=peer.is_first, generation=2)
        again.run.join(peer_again, story.run.members, again.now)

    again.pass_(100)

    assert (again.shape(), again.told, again.forms) == (story.shape(), [], [])


def begun_anew(story: Story) -> Story:
    """The coordinator that takes the run over from one that died: it knows the generation and its members."""
    again = Story()
    again.run.generation, again.run.members, again.run.state = story.run.generation, story.run.members, "running"
    again.run.expect_all(again.now)
    return again


def come_back(story: Story, *nodes: str, leaves: bool = False) -> None:
    """Agents whose processes are those of the generation."""
    generation, members = story.run.generation, story.run.members
    for node in nodes:
        is_base = node in ("n1", "n2")
        peer = Peer(node=node, is_base=is_base, is_first=node == "n1", generation=generation, is_leaving=leaves)
        story.run.join(peer, members, story.now)
        story.hear()


def test_failures_that_a_new_coordinator_hears_of_before_it_knows_who_is_lost_end_no_run() -> None:
    story = begun_anew(Story().grown())
    come_back(story, "n1", "n2", "n3")
    for node in ("n1", "n2", "n3"):  # their connections to n4 broke
        story.run.handle_end(node, "failed", story.now)

    for _ in range(20):
        story.pass_(1)

    assert story.run.members == ("n1", "n2", "n3")
    assert story.run.state == "forming"
    assert not [line for _, line in story.told if "verdict" in line]


def test_a_node_that_has_to_leave_says_so_to_a_new_coordinator_too_and_costs_no_step() -> None:
    story = begun_anew(Story().grown())
    come_back(story, "n1", "n2", "n3")
    come_back(story, "n4", leaves=True)

    assert story.run.state == "saving"
    story.save("n1", "n2", "n3", "n4")

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3"))
    assert ("n4", {"leave": True}) in story.told


def test_a_coordinator_that_dies_while_nodes_are_gathered_loses_none_of_them() -> None:
    """Two wait for the next generation, two are still to stop their processes of the last one."""
    story = Story().grown()
    story.stuck |= {"n1", "n2"}
    story.order("n1", "n2", "n3", "n4", generation=3, grace_s=0)
    assert [node for node, peer in story.run.peers.items() if peer.is_waiting] == ["n3", "n4"]
    story.stuck.clear()

    was, again = story.run, begun_anew(story)
    for node in ("n3", "n4", "n1", "n2"):
        again.come_back(was.peers[node])

    assert (again.run.state, again.run.members) == ("forming", ("n1", "n2", "n3", "n4"))
    assert not again.run.target


def test_replicas_alone_are_no_generation() -> None:
    story = Story().grown()
    for node in ("n1", "n2"):
        story.run.lost(node, story.now)
    story.pass_(LOST_S)
    assert (story.run.state, story.run.members) == ("waiting", ())
    assert story.run.why == "none of the base's own nodes has joined: waiting for one"
    story.come("n5", role="replica")
    assert story.run.state == "waiting"

    story.come("n1")

    assert story.run.members == ("n1", "n3", "n4", "n5")


def test_a_save_that_was_asked_for_by_a_coordinator_that_died_is_no_end_of_the_training() -> None:
    """HyperPod's pattern: the processes saved and ended well, because they were asked to."""
    story = begun_anew(Story().grown())
    for node in ("n1", "n2", "n3", "n4"):
        come_back(story, node)
        story.say(node, "noticed")
        story.run.handle_end(node, "done", story.now)
        story.hear()

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3", "n4"))
    assert not [line for _, line in story.told if "verdict" in line]


def test_ranks_that_saved_for_a_coordinator_that_died_go_on_in_the_next_generation() -> None:
    story = begun_anew(Story().grown())
    for node in ("n1", "n2", "n3", "n4"):
        come_back(story, node)
        story.save(node)

    assert story.shape() == ("forming", 3, ("n1", "n2", "n3", "n4"))


def test_generations_that_bring_about_each_other_end_with_the_job_failing() -> None:
    story = Story()
    story.come("n1", "n2")

    for _ in range(100):
        if story.run.state != "failed":
            story.say("n1", "step")
            story.wait("n2")  # its processes began again, whatever for
            story.now += 1

    assert story.run.generation <= MOST_ALONE + 1
    assert [line for _, line in story.told if "fail" in line] == 2 * [
        {"fail": "restarted too often without an order: n2 started its processes again"}
    ]


def test_generations_that_were_ordered_are_not_counted() -> None:
    story = Story()
    story.come("n1", "n2")
    story.come("n3", role="replica")

    for number in range(2 * MOST_ALONE):
        story.say("n1", "step")
        members = ("n1", "n2") if number % 2 else ("n1", "n2", "n3")
        story.order(*members)
        story.save(*story.run.members)

    assert story.run.state == "forming"
