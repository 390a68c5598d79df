"""What Prometheus gets of jobs and quotas."""

from dataclasses import replace

from prometheus_client import CollectorRegistry

from steward.api.job_metrics import JobMetrics
from steward.model.memory import Memory
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.workflows.snapshot import Snapshot
from tests.builders.ledger import BEGIN, a_memory
from tests.builders.picture import Picture, a_cluster
from tests.builders.quota_site import a_site, runs, settled, waits
from tests.builders.want import but


def shown(picture: Picture, before: Memory | None = None) -> Snapshot:
    seen = replace(picture.seen, at=picture.now)
    earlier = before if before is not None else Memory()
    memory = picture.memory
    return Snapshot(
        at=picture.now, number=1, seen=seen, before=earlier, memory=memory, plan=Plan(actions=(), memory=memory)
    )


def test_each_decision_about_a_failed_job_counts_once_by_its_rule() -> None:
    registry = CollectorRegistry()
    picture = a_cluster().job().opted_in().then().lost("n2").then().requeued().then(1)
    metrics = JobMetrics(registry, picture.want)
    metrics.watch(shown(picture))
    metrics.watch(shown(picture, picture.memory))
    labels = {"decision": "requeue", "rule": "resume.by_slurm"}
    assert registry.get_sample_value("steward_job_decisions_total", labels) == 1.0
    assert registry.get_sample_value("steward_jobs_waiting") == 1.0


def test_an_old_picture_and_resuming_that_is_off_are_told() -> None:
    registry = CollectorRegistry()
    picture = a_cluster()
    off = replace(picture.want, resume=but(picture.want.resume, enabled=False))
    metrics = JobMetrics(registry, off)
    metrics.watch(shown(replace(picture, seen=replace(picture.seen, slurm=Freshness.OLD))))
    assert registry.get_sample_value("steward_resume_enabled") == 0.0
    assert registry.get_sample_value("steward_source_fresh", {"source": "slurm"}) == 0.0
    assert registry.get_sample_value("steward_source_fresh", {"source": "provider"}) == 1.0


def test_the_time_of_jobs_in_the_last_day_adds_up_to_what_a_report_says() -> None:
    registry = CollectorRegistry()
    metrics = JobMetrics(registry, a_cluster().want)
    memory, at = a_memory(), BEGIN + 9000
    snapshot = Snapshot(
        at=at, number=1, seen=Observed(at=at), before=memory, memory=memory, plan=Plan(actions=(), memory=memory)
    )
    metrics.watch(snapshot)

    def of(phase: str) -> float:
        return registry.get_sample_value("steward_job_node_seconds_1d", {"partition": "main", "phase": phase}) or 0.0

    first_run, second_run = 2, 1
    assert (of("redo"), of("detect"), of("decide")) == (4 * 200.0, 4 * 1.0, 4 * (first_run + second_run))
    held = registry.get_sample_value("steward_job_held_node_seconds_1d", {"partition": "main"})
    assert held is not None
    assert 4 * 3340.0 < of("work") < held


def test_a_team_has_what_it_owns_uses_and_borrows_and_how_many_of_its_jobs_wait() -> None:
    registry = CollectorRegistry()
    site = settled(waits(runs(a_site(), 1, "a", 2), 2, "a", 8))
    metrics = JobMetrics(registry, site.want)
    metrics.watch(shown(site))
    team = {"team": "a"}
    found = {
        what: registry.get_sample_value("steward_quota_units", {**team, "resource": "ml.g6.12xlarge/gpu", "what": what})
        for what in ("nominal", "in_use", "borrowed")
    }
    assert found == {"nominal": 4.0, "in_use": 2.0, "borrowed": 0.0}
    assert registry.get_sample_value("steward_quota_jobs", {**team, "state": "waiting"}) == 1.0


def test_a_head_that_has_seen_nothing_says_so_and_does_not_fail() -> None:
    registry = CollectorRegistry()
    JobMetrics(registry, a_cluster().want)
    assert registry.get_sample_value("steward_source_fresh", {"source": "slurm"}) == 0.0
    assert registry.get_sample_value("steward_jobs_waiting") == 0.0
