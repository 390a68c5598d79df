"""Prometheus metrics of jobs: decisions, jobs that wait to be resumed, their time by phase in a day, and quotas."""

from collections.abc import Iterator, Mapping

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from steward.model.desired import Desired
from steward.model.ledger import Sums
from steward.model.memory import Memory
from steward.model.observed import Freshness
from steward.policy.draft import Draft
from steward.policy.job.decide import RULES
from steward.policy.quota.view import TeamView, quota_view
from steward.views.report import Window, grouped_sums, job_ledgers
from steward.workflows.snapshot import Snapshot

_DAY_S = 86_400.0
_FRESH_FOR_S = 60.0
"""The sums of a day are reused this long: computing them reads all jobs of a day, and Prometheus asks often."""


class JobMetrics(Collector):
    """Metrics of jobs and quotas, updated by Metrics.

    Labels are rules, partitions and teams: the number of jobs and users has no bound.
    """

    def __init__(self, registry: CollectorRegistry, want: Desired) -> None:
        self._want = want
        self._latest: Snapshot | None = None
        self._sums: tuple[float, Mapping[str, Sums]] = (0.0, {})
        self._decisions = Counter(
            "steward_job_decisions",
            "Decisions about failed jobs: retry, requeue, wait or stop, by the rule that decided (docs/resume.md).",
            ["decision", "rule"],
            registry=registry,
        )
        for rule in RULES:  # a counter must exist at 0 first: if it begins at 1, an alert sees no increase
            self._decisions.labels(rule.decision.value, rule.name)
        registry.register(self)

    def watch(self, snapshot: Snapshot) -> None:
        """Count the decisions made in this cycle."""
        self._latest = snapshot
        before, now = snapshot.before.jobs, snapshot.memory.jobs
        for id, mem in now.items() if now is not before else ():
            old = before.get(id)
            if mem is old or not mem.attempts:
                continue
            known = {(one.at, one.decided_for) for one in old.attempts} if old is not None else set()
            for one in mem.attempts:
                if (one.at, one.decided_for) not in known:
                    self._decisions.labels(one.decision.value, one.why.rule).inc()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        snapshot = self._latest
        memory = snapshot.memory if snapshot else Memory()
        pending = sum(mem.pending_from is not None for mem in memory.jobs.values())
        yield GaugeMetricFamily("steward_jobs_waiting", "Jobs that are being brought back and wait.", value=pending)
        resumes = self._want.resume.enabled
        yield GaugeMetricFamily("steward_resume_enabled", "1 while failed jobs are brought back.", value=resumes)
        yield _sources(snapshot)
        yield from _day(self._day_of(snapshot))
        yield from _quotas(snapshot, self._want)

    def _day_of(self, snapshot: Snapshot | None) -> Mapping[str, Sums]:
        if snapshot is None:
            return {}
        at, sums = self._sums
        if not at <= snapshot.at < at + _FRESH_FOR_S:
            runs = [run for job in snapshot.memory.ledger.values() for run in job]
            window = Window(since=snapshot.at - _DAY_S, until=snapshot.at)
            sums = grouped_sums(job_ledgers(runs, window, snapshot.at), lambda one: one.last.partition)
            self._sums = (snapshot.at, sums)
        return sums


def _sources(snapshot: Snapshot | None) -> GaugeMetricFamily:
    text = "1 while what Slurm, or the provider, says is read; 0: nothing harmful is planned."
    family = GaugeMetricFamily("steward_source_fresh", text, labels=["source"])
    seen = snapshot.seen if snapshot else None
    for source, state in (("slurm", seen and seen.slurm), ("provider", seen and seen.provider)):
        family.add_metric([source], state is Freshness.FRESH)
    return family


def _day(sums: Mapping[str, Sums]) -> Iterator[GaugeMetricFamily]:
    """Yield the node-seconds of `steward report` for the last day, by partition and phase.

    Phase `work` divided by the held node-seconds is the goodput, divided by all node-seconds the ETTR.
    """
    text = "Node-seconds of jobs with --auto-resume in the last 24 hours, by phase (docs/report.md)."
    phases = GaugeMetricFamily("steward_job_node_seconds_1d", text, labels=["partition", "phase"])
    text = "Those of them in which the nodes were allocated."
    held = GaugeMetricFamily("steward_job_held_node_seconds_1d", text, labels=["partition"])
    for partition, one in sums.items():
        held.add_metric([partition], one.held_node_seconds)
        for phase, seconds in one.node_seconds.items():
            phases.add_metric([partition, phase.value], seconds)
    yield phases
    yield held


def _quotas(snapshot: Snapshot | None, want: Desired) -> Iterator[GaugeMetricFamily]:
    text = "Units (GPUs, CPUs, MiB) of a team: nominal is owned, in_use, lent and borrowed are of now."
    units = GaugeMetricFamily("steward_quota_units", text, labels=["team", "resource", "what"])
    jobs = GaugeMetricFamily("steward_quota_jobs", "Jobs of a team, running or waiting.", labels=["team", "state"])
    teams: tuple[TeamView, ...] = ()
    if snapshot is not None and snapshot.memory.quotas:
        teams = quota_view(Draft(snapshot.seen, want, snapshot.memory, snapshot.at)).teams
    for team in teams:
        for row in (row for row in team.rows if row.counted):
            told = {"nominal": row.nominal, "in_use": row.in_use, "lent": row.lent, "borrowed": row.borrowed}
            for what, count in told.items():
                units.add_metric([team.quota.team, row.resource, what], count)
        for state, number in (("running", team.running), ("waiting", team.waiting)):
            if number is not None:
                jobs.add_metric([team.quota.team, state], number)
    yield units
    yield jobs
