"""What the API tells, read by our own client over HTTP."""

import threading
import time

import pytest
import requests

from steward import client
from steward.api import server
from steward.api.explain_pages import job_number
from steward.client import Client, HeadError, NotThere, Unreachable
from steward.model.access import payload
from steward.model.events import Event
from steward.model.health import Severity
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.plan import Plan
from steward.ports import Retryable
from steward.workflows.snapshot import HeadStandstill, Snapshot
from tests.builders.api_cluster import an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster, names
from tests.fakes.api_bench import ApiBench
from tests.fakes.munge import FakeMunge
from tests.fakes.until import FACT_S

NEVER_S = 86_400.0


def test_the_status_counts_nodes_agents_and_cases(api: ApiBench) -> None:
    api.show(a_cluster().lost("n3"))
    status = api.client().object("/v1/status")
    assert (status["cluster"], status["version"], status["slurm"]) == ("testing", "1.2.3", "fresh")
    assert sum(status["nodes"].values()) == 6
    assert status["agents"] == {"connected": 5, "expected": 6, "met": 6}


def test_every_node_is_shown_with_its_agent_in_natural_order(api: ApiBench) -> None:
    api.show(a_cluster(11).failing("n2", Severity.FATAL))
    nodes = api.client().array("/v1/nodes")
    assert [node["name"] for node in nodes] == [f"n{i}" for i in range(1, 12)]
    assert nodes[0]["agent"]["version"] == "1.2.3"
    assert len(nodes[1]["agent"]["bad"]) == 1


def test_cases_and_jobs_are_shown_with_their_whys(api: ApiBench) -> None:
    picture = a_cluster().job().opted_in().lost("n2")
    api.show(picture)
    (case,) = api.client().array("/v1/cases")
    assert (case["node"], case["open"]) == ("n2", True)
    assert case["why"]["rule"]
    (job,) = api.client().array("/v1/jobs")
    assert (job["id"], job["state"], job["running_on"]) == (7, "RUNNING", ["n1", "n2", "n3"])


def test_a_dry_run_tells_actions_and_whys(api: ApiBench) -> None:
    api.show(a_cluster().lost("n2"))
    found = api.client().plan()
    assert [action["action"] for action in found["actions"]] == ["DownNode"]
    assert found["actions"][0]["why"]["text"]


def test_a_node_and_a_job_are_explained(api: ApiBench) -> None:
    api.show(a_cluster().job())
    assert "n1" in api.client().explain_node("n1")["lines"][0]
    assert any("no fault brings it back" in line for line in api.client().explain_job(7)["lines"])


def test_a_repair_is_explained_with_its_node(api: ApiBench) -> None:
    api.show(a_cluster().lost("n2").then())
    (case,) = api.client().array("/v1/cases")
    for word in (case["id"], case["id"].partition("-")[0]):
        assert api.client().explain_node(word) == api.client().explain_node("n2")


def test_a_group_of_the_settings_is_not_called_unknown(api: ApiBench) -> None:
    api.show(a_cluster())
    with pytest.raises(NotThere, match=r"a group of the settings .*`steward nodes`"):
        api.client().explain_group(next(iter(a_cluster().want.slots.values())).group)


def test_an_instance_group_and_a_node_that_slurm_does_not_know_yet_are_explained(api: ApiBench) -> None:
    api.show_groups(an_api_cluster().without_node("workers-1").happened("slot.serving", data=(("group", "workers"),)))
    found = api.client().explain_group("workers")
    assert found["lines"][0].startswith("workers (Compute): InService")
    assert [event["kind"] for event in found["events"]] == ["slot.serving"]
    assert any("of group workers" in line for line in api.client().explain_node("workers-1")["lines"])
    with pytest.raises(NotThere, match="is not an instance group"):
        api.client().explain_group("nobody")


@pytest.mark.parametrize("name", ["n99", "../status", "a b?c"])
def test_a_node_that_is_not_there_is_an_error_of_one_line(api: ApiBench, name: str) -> None:
    with pytest.raises(HeadError, match=r"is not a node|Not Found"):
        api.client().explain_node(name)


def test_hostile_text_is_told_as_text(api: ApiBench) -> None:
    reason = '<script>alert(1)</script> $(reboot) "; drop table'
    api.show(a_cluster().drained("n1", reason))
    assert api.client().array("/v1/nodes")[0]["reason"] == reason


def test_events_are_told_in_order_and_from_where_one_left_off(api: ApiBench) -> None:
    api.store.add_events([Event(at=float(i), kind="test", text=str(i)) for i in range(5)])
    assert [event["text"] for event in api.client().events(limit=2)] == ["3", "4"]
    assert [event["text"] for event in api.client().events(after=1, limit=2)] == ["1", "2"]


def test_whoever_follows_is_told_of_an_event_as_it_happens(api: ApiBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_WAIT_S", NEVER_S)
    monkeypatch.setattr(client, "_FOLLOW_S", NEVER_S)
    api.store.add_events([Event(at=1.0, kind="test", text="old")])
    stream = api.client().follow(10)
    assert next(stream)["text"] == "old"

    def happen() -> None:
        time.sleep(0.1)
        api.store.add_events([Event(at=2.0, kind="test", text="new")])
        api.show(a_cluster())

    threading.Thread(target=happen).start()
    assert next(stream)["text"] == "new"


@pytest.mark.parametrize("query", ["limit=99999999", "after=-1", "wait_s=x", "limit=nan"])
def test_a_number_out_of_range_is_refused(api: ApiBench, query: str) -> None:
    answer = requests.get(f"{api.url}/v1/events?{query}", timeout=FACT_S)
    assert answer.status_code == 400
    assert "use a number from 0" in answer.json()["error"]


def test_before_the_first_look_there_is_an_error_and_no_empty_cluster(api: ApiBench) -> None:
    api.latest = None
    with pytest.raises(HeadError, match="first look"):
        api.client().object("/v1/status")


def test_metrics_are_in_prometheus_format(api: ApiBench) -> None:
    api.show(a_cluster().lost("n3"))
    api.metrics.count("DownNode", "done")
    text = requests.get(f"{api.url}/metrics", timeout=FACT_S).text
    assert 'steward_nodes{state="idle"} 6.0' in text
    assert 'steward_actions_total{kind="DownNode",outcome="done"} 1.0' in text
    assert "steward_agents_connected 5.0" in text
    assert "steward_detect_seconds_count 1.0" in text
    assert "steward_cycle_seconds_bucket" in text


@pytest.mark.parametrize(
    ("base", "flags", "word"),
    [
        (NodeBase.IDLE, "", "idle"),
        (NodeBase.IDLE, "CLOUD", "idle"),
        (NodeBase.IDLE, "MAINTENANCE RESERVED", "maint"),
        (NodeBase.IDLE, "RESERVED", "reserved"),
        (NodeBase.IDLE, "CLOUD POWERED_DOWN", "powered_down"),
        (NodeBase.IDLE, "POWERING_UP", "powering_up"),
        (NodeBase.IDLE, "INVALID_REG", "invalid"),
        (NodeBase.ALLOCATED, "MAINTENANCE", "allocated"),
        (NodeBase.IDLE, "DRAIN MAINTENANCE", "drained"),
        (NodeBase.DOWN, "MAINTENANCE", "down"),
    ],
)
def test_a_node_that_takes_no_job_does_not_count_as_idle(api: ApiBench, base: NodeBase, flags: str, word: str) -> None:
    api.show(a_cluster(1).node("n1", base=base, flags=frozenset(flags.split())))
    assert api.client().object("/v1/status")["nodes"] == {word: 1}


def test_no_agent_is_expected_on_a_node_that_is_powered_down(api: ApiBench) -> None:
    asleep = a_cluster(3).node("n2", base=NodeBase.IDLE, flags=frozenset({"POWERED_DOWN"}))
    api.show(asleep.agent("n2", connected=False, lost_at=T0, lost_why="powered down"))
    agents = api.client().object("/v1/status")["agents"]
    assert (agents["connected"], agents["expected"]) == (2, 2)


def test_root_and_slurm_user_may_pause_and_resume(api: ApiBench) -> None:
    assert api.client(uid=900).pause("maintenance")["done"]
    assert api.store.memory.paused
    assert "maintenance" in api.store.log[-1].text
    api.client().resume_actions()
    assert not api.store.memory.paused


def test_an_ordinary_user_may_not(api: ApiBench) -> None:
    with pytest.raises(HeadError, match="may not do this"):
        api.client(uid=1000).pause("")
    assert not api.store.memory.paused


def test_without_proof_nothing_changes(api: ApiBench) -> None:
    answer = requests.post(f"{api.url}/v1/pause", json={"why": "x"}, timeout=FACT_S)
    assert answer.status_code == 403
    assert not api.store.memory.paused


def _proof(api: ApiBench, method: str, path: str, body: bytes) -> dict[str, str]:
    return {"Authorization": f"MUNGE {FakeMunge(api.munged, 0).encode(payload(method, path, body))}"}


def test_a_proof_is_good_for_its_own_request_only(api: ApiBench) -> None:
    other_path = _proof(api, "POST", "/v1/resume-actions", b"{}")
    assert requests.post(f"{api.url}/v1/pause", data=b"{}", headers=other_path, timeout=FACT_S).status_code == 403
    other_body = _proof(api, "POST", "/v1/pause", b'{"why": "a"}')
    assert requests.post(f"{api.url}/v1/pause", data=b"{}", headers=other_body, timeout=FACT_S).status_code == 403
    assert not api.store.memory.paused


def test_a_proof_is_good_once(api: ApiBench) -> None:
    proof = _proof(api, "POST", "/v1/pause", b"{}")
    assert requests.post(f"{api.url}/v1/pause", data=b"{}", headers=proof, timeout=FACT_S).status_code == 200
    assert requests.post(f"{api.url}/v1/pause", data=b"{}", headers=proof, timeout=FACT_S).status_code == 403


def test_a_body_that_is_too_long_is_refused(api: ApiBench) -> None:
    assert requests.post(f"{api.url}/v1/pause", data=b"x" * 100_000, timeout=FACT_S).status_code == 413


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"why": 7}'])
def test_a_body_that_is_not_understood_changes_nothing(api: ApiBench, body: bytes) -> None:
    proof = _proof(api, "POST", "/v1/pause", body)
    assert requests.post(f"{api.url}/v1/pause", data=body, headers=proof, timeout=FACT_S).status_code == 400
    assert not api.store.memory.paused


def test_while_munged_is_away_the_refusal_says_so(api: ApiBench) -> None:
    proof = _proof(api, "POST", "/v1/pause", b"{}")
    api.munged.up = False
    answer = requests.post(f"{api.url}/v1/pause", data=b"{}", headers=proof, timeout=FACT_S)
    assert (answer.status_code, "munged" in answer.json()["error"]) == (503, True)


@pytest.mark.parametrize("url", ["head1:6860", "ftp://head1:6860", "http://head1:many", "http://"])
def test_an_address_that_is_none_of_a_head_is_told_with_the_form_that_is(url: str) -> None:
    with pytest.raises(HeadError, match=r"is not a head's address: write http://HOST:PORT"):
        Client(url).object("/v1/status")


def test_a_head_that_is_not_there_is_told_with_where_it_was_looked_for() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1: is stewardd running"):
        Client("http://127.0.0.1:1").object("/v1/status")


def test_a_head_that_decides_nothing_says_so_on_every_page_that_is_looked_at_first(api: ApiBench) -> None:
    api.show(a_cluster().lost("n3"))
    assert api.client().object("/v1/status")["standstill"] is None
    assert "steward_standstill_seconds 0.0" in requests.get(api.url + "/metrics", timeout=FACT_S).text
    api.standstill = HeadStandstill(since=api.clock.now() - 40.0, why="database steward.db: database is locked")
    assert api.client().object("/v1/status")["standstill"] == {
        "since": api.clock.now() - 40.0,
        "why": api.standstill.why,
    }
    assert "steward_standstill_seconds 40.0" in requests.get(api.url + "/metrics", timeout=FACT_S).text
    page = requests.get(api.url + "/", timeout=FACT_S).text
    assert "Nothing is decided for 40 s: database steward.db: database is locked." in page
    assert "the last picture before that" in page


def test_before_the_first_look_a_page_says_why_there_is_none(api: ApiBench) -> None:
    api.latest, api.standstill = None, HeadStandstill(since=api.clock.now() - 40.0, why="database is locked")
    with pytest.raises(HeadError, match="nothing is decided for 40 s: database is locked"):
        api.client().object("/v1/status")


def shown(picture: Picture) -> Snapshot:
    plan = Plan(actions=(), memory=picture.memory)
    return Snapshot(
        at=picture.now, number=1, seen=picture.seen, before=picture.memory, memory=picture.memory, plan=plan
    )


def test_a_task_of_an_array_that_waits_is_explained_by_the_record_of_all_that_wait() -> None:
    """Slurm has one record for all of them."""
    waiting = a_cluster().job(148, on=(), state=JobState.PENDING, started=None, array_job_id=JobId(148))
    running = waiting.job(149, array_job_id=JobId(148), array_task=1)
    assert job_number("148_150", shown(waiting)) == JobId(148)
    assert job_number("148_1", shown(running)) == JobId(149)
    assert job_number("150_1", shown(running)) is None


@pytest.mark.parametrize("word", ["7", "7+0", "7+1", "8", "7.0", "7.batch", "7+1.2", "8.extern"])
def test_a_job_is_found_by_every_name_that_slurm_gives_it_its_parts_and_its_steps(api: ApiBench, word: str) -> None:
    het = JobId(7)
    picture = a_cluster().job(7, nodes=names("n1"), het_job_id=het).job(8, nodes=names("n2"), het_job_id=het)
    api.show(picture.opted_in(7).then())
    lines = api.client().explain_job(word)["lines"]
    assert lines[0].startswith("Job 7 ")
    assert "on n[1-2]" in lines[0]
    assert "asked to be resumed" in lines[1]


@pytest.mark.parametrize("word", ["7_[1-3]", "7_[1,4-9%2]", "7_[0-8:2].0"])
def test_the_waiting_tasks_of_an_array_are_found_by_the_name_that_slurm_gives_them(api: ApiBench, word: str) -> None:
    picture = a_cluster().job(7, array_job_id=JobId(7), state=JobState.PENDING, nodes=frozenset())
    assert job_number(word, shown(picture)) == JobId(7)


def test_a_job_is_explained_as_slurm_shows_it_now_and_not_as_the_last_turn_saw_it(api: ApiBench) -> None:
    picture = a_cluster().job()
    api.show(picture)
    api.jobs_now = picture.change_job(state=JobState.FAILED).job(8, name="new").seen.jobs
    assert '"train": FAILED' in api.client().explain_job(7)["lines"][0]
    assert '"new": RUNNING' in api.client().explain_job(8)["lines"][0]
    api.jobs_now = Retryable("Slurm does not answer")
    assert '"train": RUNNING' in api.client().explain_job(7)["lines"][0]
