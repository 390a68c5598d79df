"""Actions become calls, each outcome is recorded, and an answer is never an empty promise."""

from dataclasses import replace

import pytest

from steward.model.action import (
    AllowRequeue,
    CheckNow,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    ReturnNode,
    TerminateInstance,
)
from steward.model.agent_action import CollectStacks, LetGo
from steward.model.ask import Answer
from steward.model.ids import AskId, InstanceId, Key, NodeName
from steward.model.port_error import was_not_tried
from steward.model.witness import Address, Witness
from steward.ports import Permanent, PortError, Retryable, Unsent
from tests.fakes.applier import J7, N1, N2, WHY, Bench, answer, down, drain, launch, mark, requeue
from tests.fakes.until import until


def test_a_node_is_taken_out_and_the_outcome_is_recorded() -> None:
    bench = Bench()
    bench.apply(down())
    assert bench.slurm.node_table[N1].is_down
    assert bench.store.outcomes[Key("down:n1")] == ""
    assert bench.counted == [("DownNode", "done")]
    assert bench.rings == ["changed"]


def test_a_node_that_an_admin_took_out_is_left_alone_and_told_as_stale() -> None:
    bench = Bench()
    bench.slurm.set_reason(N1, "fans", user="anna", flags={"DRAIN"})
    bench.apply(down())
    assert bench.slurm.node_table[N1].reason is not None
    assert "anna" in str(bench.slurm.node_table[N1].reason)
    assert bench.counted == [("DownNode", "stale")]


def test_a_returned_node_is_out_of_service_no_longer() -> None:
    bench = Bench()
    bench.apply(down(), ReturnNode(key=Key("return"), why=WHY, node=N1, mark=mark()))
    assert not bench.slurm.node_table[N1].is_drain
    assert not bench.slurm.node_table[N1].is_down
    assert [outcome for _, outcome in bench.counted] == ["done", "done"]


def test_the_answer_follows_a_requeue_that_was_done() -> None:
    bench = Bench()
    bench.run_job()
    bench.apply(requeue(), answer())
    assert bench.agents.answers == [(AskId("a1"), Answer.REQUEUE)]
    assert bench.slurm.job_table[J7].is_pending


def test_an_answer_is_withheld_when_the_requeue_it_promises_failed() -> None:
    bench = Bench()
    bench.run_job()
    bench.slurm.refuse = Retryable("slurmctld does not answer")
    bench.apply(requeue(), answer())
    assert bench.agents.answers == []
    assert bench.counted == [("RequeueJob", "retry"), ("AnswerAsk", "not tried")]
    assert "promises" in str(bench.store.outcomes[Key("answer:a1")])


def test_a_retry_is_withheld_when_the_bad_node_could_not_be_taken_out() -> None:
    bench = Bench()
    bench.run_job()
    bench.slurm.refuse = Retryable("slurmctld does not answer")
    bench.apply(down(), answer(Answer.RETRY, frozenset({N1})))
    assert bench.agents.answers == []


def test_stop_is_never_withheld() -> None:
    bench = Bench()
    bench.run_job()
    bench.slurm.refuse = Retryable("slurmctld does not answer")
    bench.apply(requeue(), answer(Answer.STOP))
    assert bench.agents.answers == [(AskId("a1"), Answer.STOP)]


def test_an_answer_that_nobody_waits_for_is_stale() -> None:
    bench = Bench()
    bench.apply(answer(Answer.STOP))
    assert bench.counted == [("AnswerAsk", "stale")]


def test_a_refused_action_does_not_keep_the_next_from_being_tried() -> None:
    bench = Bench()
    bench.apply(requeue(), AllowRequeue(key=Key("allow"), why=WHY, job=J7), NudgeJob(key=Key("nudge"), why=WHY, job=J7))
    assert [kind for kind, _ in bench.counted] == ["RequeueJob", "AllowRequeue", "NudgeJob"]
    assert all(outcome != "done" for _, outcome in bench.counted)
    bench.apply(down())
    assert bench.slurm.node_table[N1].is_down


def test_what_surely_reached_nobody_counts_as_not_tried() -> None:
    bench = Bench()
    bench.slurm.refuse = Unsent("no slurmctld is there")
    bench.apply(down())
    assert bench.counted == [("DownNode", "not tried")]
    assert was_not_tried(bench.store.outcomes[Key("down:n1")] or "")


def test_a_launch_runs_beside_the_cycle_and_rings_the_bell_when_it_ends() -> None:
    bench = Bench()
    bench.apply(launch())
    assert Key("launch:c1-0") not in bench.store.outcomes
    bench.provider.gate.set()
    until("the bell rang", lambda: "bell" in bench.rings)
    assert bench.store.outcomes[Key("launch:c1-0")] == ""
    assert bench.rings == ["listing", "bell"]


def test_the_same_launch_is_not_begun_twice_while_it_is_under_way() -> None:
    bench = Bench()
    bench.apply(launch())
    bench.apply(launch())
    bench.provider.gate.set()
    until("the launch ended", lambda: "bell" in bench.rings)
    assert bench.provider.calls == ["launch n1 c1-0"]


def test_a_refused_launch_is_recorded_with_the_providers_words() -> None:
    bench = Bench()
    bench.provider.gate.set()
    bench.provider.refuse = Permanent("no such image")
    bench.apply(launch())
    until("the launch ended", lambda: "bell" in bench.rings)
    assert bench.store.outcomes[Key("launch:c1-0")] == "no such image"
    assert bench.counted == [("LaunchInstance", "refused")]


@pytest.mark.parametrize(
    ("error", "text"),
    [(Permanent("no such image"), "refused: no such image"), (Retryable("capacity: none"), "capacity: none")],
)
def test_a_launch_for_a_group_that_will_never_work_is_recorded_as_refused(error: PortError, text: str) -> None:
    bench = Bench()
    bench.provider.gate.set()
    bench.provider.refuse = error
    bench.apply(replace(launch(), case=None))
    until("the launch ended", lambda: "bell" in bench.rings)
    assert bench.store.outcomes[Key("launch:c1-0")] == text


def test_what_a_witness_saw_reaches_the_agents_views() -> None:
    bench = Bench()
    bench.apply(ProbeNode(key=Key("probe:n1"), why=WHY, node=N1, peers=frozenset({N2})))
    until("the bell rang", lambda: "bell" in bench.rings)
    assert bench.agents.looked_at_by == {N1: (Address(host="127.0.0.1", port=6818), frozenset({N2}))}
    assert (bench.witness.looks, bench.agents.seen[N1].result) == ([{N1}], Witness.REFUSED)


def test_nodes_are_looked_at_together() -> None:
    bench = Bench()
    bench.apply(*(ProbeNode(key=Key(f"probe:{node}"), why=WHY, node=node, peers=frozenset()) for node in (N1, N2)))
    until("the bell rang", lambda: "bell" in bench.rings)
    assert (bench.witness.looks, {*bench.agents.seen}, bench.agents.looked_at_by) == ([{N1, N2}], {N1, N2}, {})


def test_machines_are_rebooted_and_terminated_by_the_provider() -> None:
    bench = Bench()
    instance = InstanceId("i-1")
    bench.apply(
        TerminateInstance(key=Key("terminate"), why=WHY, instance=instance, node=N1),
        RebootInstance(key=Key("reboot"), why=WHY, instance=instance, node=N1, token="t"),
    )
    until("both ended", lambda: bench.rings.count("bell") == 2)
    assert sorted(bench.provider.calls) == ["reboot i-1 t", "terminate i-1"]


def test_agents_are_asked_for_fresh_checks() -> None:
    bench = Bench()
    bench.apply(CheckNow(key=Key("check"), why=WHY, nodes=frozenset({N1, N2}), budget_s=2.0))
    assert bench.agents.checked == [frozenset({N1, N2})]


def test_agents_are_told_to_let_go_of_a_lost_run() -> None:
    bench = Bench()
    order = LetGo(key=Key("letgo:7:0"), why=WHY, job=J7, uid=1000, nodes=frozenset({N1, N2}), restart=0, before=999.0)
    bench.apply(order)
    assert bench.agents.orders == [order]
    assert bench.store.outcomes[Key("letgo:7:0")] == ""


def test_agents_are_told_to_keep_the_stacks_of_a_job() -> None:
    bench = Bench()
    order = CollectStacks(
        key=Key("s"), why=WHY, job=J7, uid=1000, nodes=frozenset({N1}), name="job-7-0-1", signal="USR1"
    )
    bench.apply(order)
    assert bench.agents.orders == [order]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyError("n9")])
def test_an_unforeseen_error_is_an_outcome_and_not_the_end(error: Exception) -> None:
    bench = Bench()
    bench.slurm.refuse = error  # type: ignore[assignment]
    bench.apply(down(), CheckNow(key=Key("check"), why=WHY, nodes=frozenset({N1}), budget_s=2.0))
    assert type(error).__name__ in str(bench.store.outcomes[Key("down:n1")])
    assert bench.agents.checked == [frozenset({N1})]


def test_a_store_that_fails_does_not_stop_what_comes_after() -> None:
    bench = Bench()
    bench.store.refuse = Retryable("disk full")
    bench.apply(down(), drain(N2, "c2"))
    assert bench.slurm.node_table[N1].is_down
    assert bench.slurm.node_table[N2].is_drain


def test_one_node_that_somebody_took_out_does_not_keep_the_others_of_its_call() -> None:
    bench = Bench()
    bench.slurm.set_reason(N2, "mine", flags={"DRAIN"})
    bench.apply(*(drain(NodeName(f"n{number}"), "c1") for number in (1, 2, 3)))

    assert [bench.slurm.node_table[NodeName(f"n{number}")].is_ours for number in (1, 2, 3)] == [True, False, True]
    assert bench.store.outcomes[drain(N1, "c1").key] == ""
    assert "mine" in str(bench.store.outcomes[drain(N2, "c1").key])


def test_how_all_of_it_went_is_written_at_once() -> None:
    bench, wrote = Bench(), list[str]()
    bench.store.wrote = wrote.append
    check = CheckNow(key=Key("check"), why=WHY, nodes=frozenset({N1}), budget_s=2.0)
    bench.apply(drain(N1, "c1"), drain(N2, "c2"), check)

    assert wrote == ["outcome"]
    assert set(bench.store.outcomes) == {"drain:n1", "drain:n2", "check"}
