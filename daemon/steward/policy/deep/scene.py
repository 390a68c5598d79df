"""A deep check and what the picture shows of it."""

from dataclasses import dataclass

from steward.model.deep import DeepReport, DeepRun, slurm_name
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.reservation import Reservation
from steward.policy.deep.crowd import Crowd
from steward.policy.draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepScene:
    run: DeepRun
    crowd: Crowd
    draft: Draft

    @property
    def name(self) -> str:
        """The name of its reservation, partition and job: another one for each try."""
        return slurm_name(self.run.token)

    @property
    def reservation(self) -> Reservation | None:
        """The reservation that holds all nodes of the check; None before Slurm showed it."""
        found = self.draft.seen.reservations.get(self.name)
        return found if found is not None and found.ends and found.nodes >= self.nodes else None

    @property
    def nodes(self) -> frozenset[NodeName]:
        """The nodes of the check that it is not over for yet."""
        return self.run.nodes - self.run.results.keys()

    @property
    def job(self) -> Job | None:
        """The newest job of the check; nobody else can use its partition."""
        return max(self.draft.overview.deep_jobs(self.name), key=lambda job: job.id, default=None)

    @property
    def is_job_over(self) -> bool:
        """Whether its job is over, or not to be found."""
        return self.job is None or self.job.is_over

    @property
    def job_end(self) -> str:
        """How its job ended, for people; its exit code as Slurm writes it, code:signal."""
        job = self.job
        if job is None:
            return "Slurm has no such job"
        return f"job {job.id}: {job.state.value}, exit code {job.exit_status >> 8}:{job.exit_status & 0x7F}"

    @property
    def reports(self) -> dict[NodeName, DeepReport]:
        """The words of its nodes in this try."""
        views = ((name, self.draft.seen.agents.get(name)) for name in sorted(self.nodes))
        told = ((name, report) for name, view in views if view for report in view.deep if report.run == self.run.token)
        return dict(told)
