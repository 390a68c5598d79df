"""One word for each node, and what comes next."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.case import CaseStep
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState
from steward.model.health import Scope, Severity
from steward.model.node import NodeBase
from steward.model.setting_types import RepairMode
from steward.model.witness import Witness
from steward.policy.controls import pause
from steward.policy.draft import Draft
from steward.views.node_verdict import AWAITS_WITNESS, NodeVerdict, Word, node_verdict, node_verdicts
from tests.builders.api_cluster import an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster, n, names
from tests.builders.want import but


def of(picture: Picture, name: str = "n2") -> NodeVerdict:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    said = node_verdict(n(name), draft)
    assert said == node_verdicts(Draft(picture.seen, picture.want, picture.memory, picture.now))[n(name)]
    return said


def degraded(picture: Picture, name: str = "n2", **fields: Any) -> Picture:
    return picture.failing(name, Severity.DEGRADED, **{"check": "disk", "text": "/ is full", "event": False, **fields})


def remembering(picture: Picture, **run: Any) -> Picture:
    made = DeepRun(
        id="d1",
        who="steward",
        kinds=frozenset({DeepKind.STRESS}),
        nodes=names("n2"),
        asked=T0 - 60,
        entered=T0 - 30,
        **run,
    )
    return replace(picture, memory=replace(picture.memory, deeps={"d1": made}))


def with_mode(picture: Picture, **modes: str) -> Picture:
    return replace(picture, want=replace(picture.want, modes=modes))


def test_a_sound_node_is_fine_and_says_how_many_checks_passed() -> None:
    said = of(a_cluster().agent("n2", passed=frozenset({"disk", "memory"})))
    assert said == NodeVerdict(word=Word.FINE, evidence="2 checks passed")


def test_a_degraded_node_waits_for_its_job_and_names_it() -> None:
    busy = a_cluster().job(12, on=("n2", "n3")).node("n2", base=NodeBase.ALLOCATED)
    said = of(degraded(busy).then(1).marked("n2").then(1))
    assert (said.word, said.evidence, said.since) == (Word.DEGRADED, "disk: / is full", T0)
    assert said.next == "replaced when job 12 ends"


def test_a_degraded_node_with_many_jobs_names_some_of_them() -> None:
    picture = degraded(a_cluster())
    for job in range(1, 6):
        picture = picture.job(job, on=("n2",))
    assert of(picture.then(1)).next == "replaced when jobs 1, 2, 3 and 2 more end"


def test_the_second_lost_node_waits_for_its_turn() -> None:
    picture = a_cluster().lost("n2", "n5").then().marked("n2").marked("n5").then(1)
    first, second = of(picture), of(picture, "n5")
    assert first.word is Word.IN_REPAIR
    assert second.word is Word.LOST
    assert second.next == "replaced in its turn: 1 of at most 1 repairs run (n2)"


def test_a_silent_agent_is_a_suspicion_until_a_second_witness_agrees() -> None:
    said = of(a_cluster().agent_lost("n2").then(0.1))
    assert (said.word, said.next) == (
        Word.SUSPECT,
        "taken out of service when a second source confirms it, else left in service",
    )


def test_a_suspicion_that_was_told_in_vain_waits_for_another_witness() -> None:
    """As of a node whose slurmd and agent were both told to end, and are not started again."""
    off = a_cluster().agent_lost("n2", ago_s=0.0).agent("n2", leaves=True).witnessed("n2", Witness.REFUSED)
    for _ in range(12):
        off = off.then(5.0).witnessed("n2", Witness.REFUSED)
    assert [event.kind for event in off.plan().events] == []
    assert of(off).next == AWAITS_WITNESS


def test_an_overdue_heartbeat_is_a_suspicion() -> None:
    assert of(a_cluster().agent("n2", late=True)).word is Word.SUSPECT


def test_in_report_mode_a_fault_is_told_and_nothing_follows() -> None:
    said = of(degraded(a_cluster(mode=RepairMode.REPORT)).then(1))
    assert (said.word, said.next) == (Word.REPORT_ONLY, "nothing: reported only (repair.mode)")


def test_a_lost_node_stays_lost_in_report_mode() -> None:
    said = of(a_cluster(mode=RepairMode.REPORT).lost("n2"))
    assert (said.word, said.next) == (Word.LOST, "nothing: reported only (repair.mode)")


def test_a_check_that_only_reports_is_named() -> None:
    said = of(with_mode(degraded(a_cluster()), disk="report"))
    assert (said.word, said.evidence) == (Word.REPORT_ONLY, "disk: / is full")
    assert said.next == "nothing: check disk only reports (mode in [checks.disk])"


def test_a_shared_fault_is_no_nodes() -> None:
    said = of(degraded(a_cluster(), scope=Scope.CLUSTER))
    assert (said.word, said.next) == (Word.REPORT_ONLY, "nothing: a shared resource fails: no fault of this node")


def test_what_is_only_told_leaves_a_node_fine_and_is_named() -> None:
    said = of(a_cluster().failing("n2", Severity.INFO, check="gpu.persist"))
    assert (said.word, said.evidence) == (Word.FINE, "0 checks passed; reported only: gpu.persist")


def test_a_node_that_slurm_has_down_is_not_fine_though_its_checks_pass() -> None:
    said = of(a_cluster().node("n2", base=NodeBase.DOWN))
    assert said.word is Word.SUSPECT
    assert said.evidence == "Slurm says DOWN; its checks found no fault"
    assert "state=resume" in said.next


def test_somebody_elses_drain_is_foreign_whatever_fails() -> None:
    said = of(degraded(a_cluster().drained("n2", "new fan")))
    assert (said.word, said.evidence) == (Word.FOREIGN, '"new fan" by root')
    assert "state=resume" in said.next


@pytest.mark.parametrize("flag", ["REBOOT_REQUESTED", "REBOOT_ISSUED"])
def test_a_node_that_slurm_reboots_for_a_person_waits_for_slurm(flag: str) -> None:
    picture = a_cluster().drained("n2", "Reboot ASAP").node("n2", flags={"DRAIN", flag})
    said = of(picture)
    assert (said.word, said.evidence) == (Word.UNWATCHED, 'Slurm reboots it: "Reboot ASAP" by root')
    assert said.next == "Slurm gives it back after its reboot, if it was the reboot that drained it"


def test_an_admins_command_is_not_foreign() -> None:
    picture = a_cluster().drained("n2", "Action:Replace")
    assert of(picture.then(1)).word is Word.IN_REPAIR
    assert of(picture).word is not Word.FOREIGN


def test_a_paused_head_says_so_for_every_case() -> None:
    picture = a_cluster().lost("n2").then().marked("n2").then(1)
    assert "paused" in of(replace(picture, memory=pause(picture.memory))).next


def test_a_held_node_waits_for_a_person() -> None:
    picture = a_cluster(provider=False).lost("n2").then().marked("n2").then(1)
    (case,) = picture.memory.cases.values()
    assert case.step is CaseStep.HELD
    said = of(picture)
    assert said.word is Word.HELD
    assert said.next.startswith("a person looks at it, then `scontrol update nodename=n2 state=resume`")


def test_a_doubt_leads_to_a_deep_check() -> None:
    picture = a_cluster().failing("n2", Severity.SUSPECT, check="gpu.slow", text="70 %", event=False)
    said = of(picture)
    assert (said.word, said.evidence) == (Word.SUSPECT, "check gpu.slow: 70 %")
    assert said.next == "deep check when it is idle next"
    off = replace(picture, want=replace(picture.want, deep=but(picture.want.deep, suspects=False)))
    assert "deep.suspects" in of(off).next


def test_a_doubt_that_was_looked_into_says_when_it_is_again() -> None:
    picture = a_cluster().failing("n2", Severity.SUSPECT, check="gpu.slow", text="70 %", event=False)
    passed = remembering(picture, cause=DeepCause.SUSPECT, state=DeepState.DONE, results={n("n2"): DeepResult.PASSED})
    assert of(passed).next.startswith("deep check d1 said Passed; again in")


@pytest.mark.parametrize(("state", "word"), [(DeepState.WAITING, Word.FINE), (DeepState.RUNNING, Word.IN_DEEP_CHECK)])
def test_a_deep_check_has_a_node_only_while_it_is_reserved_for_it(state: DeepState, word: Word) -> None:
    said = of(remembering(a_cluster(), cause=DeepCause.SWEEP, state=state))
    assert said.word is word


def test_a_node_without_an_agent_is_unwatched() -> None:
    picture = a_cluster()
    silent = picture.see(agents={k: v for k, v in picture.seen.agents.items() if k != n("n2")})
    assert of(silent).word is Word.UNWATCHED
    asleep = silent.node("n2", flags=frozenset({"POWERED_DOWN"}))
    assert of(asleep).evidence == "Slurm has it POWERED_DOWN"


def test_a_slot_on_its_way_is_unwatched_and_says_where_it_is() -> None:
    picture = an_api_cluster(workers=2).without_node("workers-1")
    said = node_verdict(n("workers-1"), Draft(picture.seen, picture.want, picture.memory, T0))
    assert said.word is Word.UNWATCHED
    assert "group workers" in said.evidence


def test_hostile_text_stays_one_printable_line() -> None:
    said = of(a_cluster().drained("n2", "$(x)\n\x1b[31m" + "y" * 9000))
    assert said.evidence.isprintable()
    assert len(said.evidence) <= 500


def test_a_verdict_decides_nothing() -> None:
    picture = a_cluster().lost("n1", "n2", "n3")
    before = picture.memory
    of(picture)
    assert picture.memory == before
