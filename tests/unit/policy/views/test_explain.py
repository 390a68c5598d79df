"""`explain` tells people what is known, what was decided and why; hostile text stays text on one line."""

from dataclasses import replace

import pytest

from steward.model.ask import AskKind
from steward.model.case import CaseStep, Remedy
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.ids import CaseId, JobId
from steward.model.job import JobState
from steward.model.memory import Breaker
from steward.model.resume_mode import ResumeMode
from steward.model.setting_types import RepairMode
from steward.policy.controls import pause
from steward.policy.draft import Draft
from steward.views.explain import explain_job, explain_node, job_warning
from steward.views.node_verdict import node_verdict
from tests.builders.picture import T0, Picture, a_cluster, n, names
from tests.builders.slurm_drains import slurm_drains
from tests.builders.want import but


def of_node(picture: Picture, name: str) -> str:
    return "\n".join(explain_node(n(name), picture.seen, picture.want, picture.memory, picture.now))


def of_job(picture: Picture, id: int = 7) -> str:
    return "\n".join(explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now))


def test_a_dead_node_shows_its_case_the_evidence_and_what_comes_next() -> None:
    text = of_node(a_cluster().lost("n2").then(3), "n2")
    for part in ("Case c1-", "second source", "refused", "step drain", "Slurm to show it out of service"):
        assert part in text


def test_a_node_that_waits_for_its_turn_says_for_whom() -> None:
    picture = a_cluster().lost("n2", "n5").then().marked("n2").marked("n5").then(1)
    assert "waits for its turn: 1 of at most 1 repairs run (n2)" in of_node(picture, "n5")


REPLACE = """`scontrol update nodename=n2 state=fail reason="Action:Replace"`"""
RESUME = "`scontrol update nodename=n2 state=resume`"


def orphaned(*, provider: bool = True) -> Picture:
    """The store was lost, and with it the repair whose mark the node bears."""
    return a_cluster(provider=provider).down("n2", "steward:agent:replace:c9-65f")


def of_orphan(picture: Picture) -> list[str]:
    """The event, the explanation and the next step."""
    events = [event.text for event in picture.plan().events if event.kind == "node.orphan"]
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    return [*events, of_node(picture, "n2"), node_verdict(n("n2"), draft).next]


@pytest.mark.parametrize("silent", ["agent", "slurmd", "agent, no provider", ""])
def test_our_mark_without_a_repair_is_told_with_the_way_out_that_the_machine_needs(silent: str) -> None:
    picture = orphaned(provider=silent != "agent, no provider")
    if silent.startswith("agent"):
        agents = {name: view for name, view in picture.seen.agents.items() if name != "n2"}
        picture = picture.see(agents=agents)
    picture = picture.node("n2", responding=silent != "slurmd")
    said = of_orphan(picture)
    assert len(said) == 3, said
    for text in said:
        assert (REPLACE in text) is (silent in ("agent", "slurmd"))
        assert (RESUME in text) is (silent not in ("agent", "slurmd"))
        assert ("repair it, then" in text) is (silent == "agent, no provider")
        assert "given back when" not in text
        assert "returns to service" not in text
    assert "No faults found" not in said[1]


def test_nobody_is_told_to_replace_a_machine_whose_agent_may_still_come_after_the_heads_start() -> None:
    picture = orphaned().see(agents_since=a_cluster().now - 1.0)
    gone = picture.see(agents={name: view for name, view in picture.seen.agents.items() if name != "n2"})
    assert len(said := of_orphan(gone)) == 2
    assert not any("scontrol" in text for text in said)
    assert gone.plan().wake_at is not None
    assert all(REPLACE in text for text in of_orphan(gone.then(60.0)))
    assert [RESUME in text for text in of_orphan(picture.then(1.0))] == [True, True]
    assert [RESUME in text for text in of_orphan(picture)] == [True, True, True]


@pytest.mark.parametrize("reason", ["Kill task failed (JobId=7 StepId=0)", "Action:Reboot"])
def test_a_node_under_repair_is_never_called_somebody_elses(reason: str) -> None:
    """Slurm's own reason, or an admin's command, stays on it until the repair is over."""
    picture = slurm_drains(a_cluster(), reason, "n2")
    for step in CaseStep:
        repaired = picture.then(1.0).then(1.0)
        (case,) = repaired.memory.cases.values()
        at_step = replace(case, step=step, rung=Advice.REBOOT if step is not CaseStep.SUSPECT else case.rung)
        later = replace(repaired, memory=replace(repaired.memory, cases={case.id: at_step}))
        silent = later.agent("n2", connected=False, lost_at=later.now)
        for seen in (later, silent):
            assert "somebody else" not in of_node(seen, "n2"), (step, seen is silent)


def test_a_reason_of_slurms_own_is_not_called_somebody_elses_while_the_agent_is_away() -> None:
    known = a_cluster().then(1.0)
    silent = slurm_drains(known, "Kill task failed (JobId=7 StepId=0)", "n2").agent("n2", connected=False)
    text = of_node(silent, "n2")
    assert "somebody else" not in text
    assert "the node's agent is awaited" in text


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
    said = "not resumed (the script failed): no hardware fault found on its nodes; treated as the job's own failure"
    assert said in text
    assert "[resume.no_evidence]" in text


def test_a_resumed_job_names_the_culprit_and_the_evidence() -> None:
    back = a_cluster().job().opted_in().then().lost("n2").then().marked("n2").requeued().then(5)
    text = of_job(back.change_job(excluded=names("n2")))
    for part in ("requeued", "because n2:", "kept off n2 (ExcNodeList)", "has waited to run again"):
        assert part in text
    assert "kept off" not in of_job(back.change_job(excluded=names("n3"))), "an admin replaced the list"


def test_a_job_whose_state_slurm_hides_while_it_completes_is_completing() -> None:
    picture = a_cluster().job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}))
    assert of_job(picture).startswith('Job 7 "train": COMPLETING')


def test_a_task_of_an_array_is_named_as_squeue_names_it() -> None:
    assert of_job(a_cluster().job(array_job_id=JobId(5), array_task=2)).startswith('Job 5_2 (job 7) "train"')


@pytest.mark.parametrize(
    ("restarts", "said"), [(0, "never restarted"), (1, "restarted once"), (3, "restarted 3 times")]
)
def test_how_often_a_job_restarted_is_said_as_people_say_it(restarts: int, said: str) -> None:
    assert of_job(a_cluster().job().change_job(restarts=restarts)).splitlines()[0].endswith(f", {said}.")


def test_only_what_is_known_is_said_of_a_job_that_nobody_told_of() -> None:
    picture = a_cluster().job()
    assert "The job has not run yet" in of_job(picture.change_job(state=JobState.PENDING))
    unread = of_job(picture.see(unread={JobId(7): "its record cannot be read: Permission denied"}))
    assert "Whether the job asked to be resumed" in unread
    assert "Permission denied" in unread
    assert "Nothing shows that it asked" in of_job(picture.change_job(state=JobState.FAILED))


def test_explaining_changes_nothing() -> None:
    picture = a_cluster().lost("n1", "n2", "n3")
    before = picture.memory
    of_node(picture, "n1")
    assert picture.memory == before


def test_the_verdict_and_what_comes_next_are_the_first_lines() -> None:
    picture = a_cluster(mode=RepairMode.REPORT).failing(
        "n2", Severity.DEGRADED, check="disk", text="/ is full", event=False
    )
    first, second, *_ = of_node(picture.after(180), "n2").splitlines()
    assert first == "n2 is REPORT-ONLY (for 3 min): disk: / is full."
    assert second == "Next: nothing: reported only (repair.mode)."


def test_findings_are_told_bad_ones_first_then_unknown_ones_then_those_that_are_well() -> None:
    bad = Finding(check="gpu.temp", outcome=Outcome.FAILED, severity=Severity.SUSPECT, text="hot", hardware="GPU-1")
    lost = Finding(check="memory", outcome=Outcome.UNKNOWN, text="timed out")
    shown = {"findings": (lost, bad), "passed": frozenset({"disk", "clock"}), "skipped": frozenset({"ib.state"})}
    lines = of_node(a_cluster().agent("n2", **shown), "n2").splitlines()
    told = [line for line in lines if line.startswith(("Check", "2 checks", "1 check"))]
    assert told == [
        "Check gpu.temp failed (suspect) [GPU-1]: hot",
        "Check memory says unknown (never acted on): timed out",
        "2 checks passed: clock, disk.",
        "1 check does not apply here (no such hardware or tool): ib.state.",
    ]


def test_since_when_a_result_holds_and_when_a_check_last_passed_is_told() -> None:
    def finding(outcome: Outcome, **times: float) -> Finding:
        return Finding(check="disk", outcome=outcome, severity=Severity.SUSPECT, text="full", **times)  # type: ignore[arg-type]

    def line(found: Finding) -> str:
        lines = of_node(a_cluster().agent("n2", findings=(found,)), "n2").splitlines()
        return next(line for line in lines if line.startswith("Check "))

    failed = finding(Outcome.FAILED, at=T0 - 300, passed_at=T0 - 315)
    assert line(failed) == "Check disk failed (suspect, 5 min ago; last passed 5 min ago): full"
    coming = finding(Outcome.FAILED, at=T0 - 300, passed_at=T0 - 5, good_since=T0 - 50)
    assert "its looks have passed again for 50 s, not long enough yet" in line(coming)
    unknown = finding(Outcome.UNKNOWN, at=T0 - 300, passed_at=T0 - 400)
    assert line(unknown) == "Check disk says unknown (for 5 min, never acted on; last passed 7 min ago): full"


def test_since_when_the_checks_pass_is_told_and_by_name_those_that_began_later() -> None:
    def line(*times: float) -> str:
        names = frozenset("abcdefgh"[: len(times)])
        picture = a_cluster().agent("n2", passed=names, passed_since=tuple(int(T0 - ago) for ago in times))
        lines = of_node(picture, "n2").splitlines()
        return next(line for line in lines if "passed" in line and line[0].isdigit())

    assert line(7200, 7190) == "2 checks passed: a, b. They have passed for 2 h."
    assert line(7200, 180) == "2 checks passed: a, b. They have passed for 2 h; b only for 3 min."
    many = line(7200, 9, 8, 7, 6, 5, 4)
    assert "They have passed for 2 h; g only for 4 s; f only" in many
    assert many.endswith("; c only for 8 s; and 1 more.")


def test_a_tripped_breaker_and_when_one_repair_is_let_through_are_told() -> None:
    picture = a_cluster().failing("n2", Severity.DEGRADED, check="disk", text="full", event=False)
    breaker = Breaker(scope="check:disk", tripped=picture.now - 600, text="breaker check:disk: 3 nodes")
    tripped = replace(picture, memory=replace(picture.memory, breakers={"check:disk": breaker}))
    text = of_node(tripped, "n2")
    assert "Breaker: breaker check:disk: 3 nodes; one repair is let through in 20 min." in text
    assert "Nothing is done about it: breaker check:disk" in text


def test_what_was_done_to_the_hardware_and_its_lemon_score_are_told() -> None:
    picture = a_cluster().agent("n2", hardware=("BOARD-7",))
    done = Remedy(
        at=picture.now - 7200, rung=Advice.REPLACE, node=n("n9"), instance=None, case=CaseId("c3"), check="xid"
    )
    picture = replace(
        picture, memory=replace(picture.memory, remedies={"BOARD-7": (done, replace(done, case=CaseId("c4")))})
    )
    text = of_node(picture, "n2")
    assert "Done 2 h ago: replace for xid (case c3, hardware BOARD-7)." in text
    assert "Lemon score 10.0 of BOARD-7" in text
    assert "BOARD-7" not in of_node(picture, "n3")


def test_deep_checks_and_what_users_see_are_told() -> None:
    run = DeepRun(
        id="d1",
        cause=DeepCause.SWEEP,
        who="steward",
        kinds=frozenset({DeepKind.STRESS}),
        nodes=names("n2"),
        asked=a_cluster().now - 60,
        ended=a_cluster().now - 30,
        state=DeepState.DONE,
        results={n("n2"): DeepResult.PASSED},
        why={n("n2"): "all well"},
    )
    picture = a_cluster().node("n2", active_features=frozenset({"HealthCheck:Passed", "a100"}))
    text = of_node(replace(picture, memory=replace(picture.memory, deeps={"d1": run})), "n2")
    assert "Deep check d1 (sweep; InstanceStress), 30 s ago: Passed: all well" in text
    assert "Node feature in Slurm: HealthCheck:Passed." in text


def test_a_job_is_explained_with_its_options_and_what_it_has_left() -> None:
    mode = ResumeMode.parse("any:3,max=10,codes=4")
    text = of_job(a_cluster().job().opted_in(mode=mode).then())
    assert "--auto-resume=any:3,max=10,codes=4); 0 of 10 resumes are used, 0 of 3 without evidence." in text
    assert "max=10 (its own), stalls=2 (site), age=180 (site)" in text
    assert "codes=4:93 (its own)" in text


def test_a_job_that_waits_for_free_nodes_says_so() -> None:
    text = of_job(a_cluster(3).job().opted_in().then().lost("n2").then().marked("n2").requeued().then(5))
    assert "to wait until enough nodes are free" in text
    assert "[resume.wait]" in text


def test_a_job_is_warned_of_what_the_sites_settings_keep_steward_from_doing_for_it() -> None:
    want = a_cluster().want
    assert job_warning(want) == ""
    reports = replace(want, repair=but(want.repair, mode=RepairMode.REPORT))
    assert 'only reports on this cluster (repair.mode = "report")' in job_warning(reports)
    off = replace(reports, resume=but(want.resume, enabled=False))
    assert "resuming is off on this cluster (resume.enabled = false)" in job_warning(off)


def test_a_reason_is_shown_as_its_author_wrote_it_wherever_it_is_shown() -> None:
    text = of_node(a_cluster().drained("n2", "Lüfter-故障"), "n2")
    assert text.count("Lüfter-故障") == 2
    assert "?" not in text


def test_names_are_shown_as_slurm_holds_them_but_for_what_steers_a_terminal() -> None:
    named = a_cluster().job(name="学習-é-🚀").opted_in().then()
    assert '"学習-é-🚀"' in of_job(named)
    assert named.memory.ledger[JobId(7)][0].name == "学習-é-🚀"
    steered = of_job(a_cluster().job(name="a\u202eb\x1b[2Jc\nd"))
    assert '"a?b?[2Jc d"' in steered.splitlines()[0]


@pytest.mark.parametrize("kind", ["a person's drain", "report", "paused"])
def test_a_job_on_a_lost_node_that_is_left_alone_says_so_and_what_brings_it_back(kind: str) -> None:
    picture = a_cluster().job(on=("n1", "n2")).opted_in().then()
    if kind == "a person's drain":
        picture = picture.drained("n2", "rack work")
    elif kind == "report":
        picture = picture.repair(mode=RepairMode.REPORT)
    else:
        picture = replace(picture, memory=pause(picture.memory))
    picture = picture.lost("n2").then(3)

    why = {"a person's drain": "rack work", "report": "report only", "paused": "actions are paused"}[kind]
    for text in (of_job(picture), of_node(picture, "n2")):
        assert why in text
        assert "`scontrol update nodename=n2 state=down reason=lost`" in text
    assert "state=down" not in of_job(a_cluster().job(on=("n1", "n2")).opted_in().then().lost("n2").then(3))


def test_a_lost_node_without_a_job_is_not_called_one_that_a_job_waits_for() -> None:
    assert "state=down" not in of_node(a_cluster().drained("n2", "rack work").lost("n2").then(3), "n2")


def test_checks_of_a_node_without_its_agent_are_not_said_to_pass_now() -> None:
    picture = a_cluster().agent("n2", passed=("disk", "memory"), passed_since=(int(T0 - 60), int(T0 - 60)))
    assert "They have passed for" in of_node(picture, "n2")
    gone = of_node(picture.lost("n2").then(3), "n2")
    assert "2 checks passed: disk, memory. Its agent is gone: that was before." in gone
