"""A cluster whose teams have quotas: two machines of four GPUs each, accounts, and AWS clients for the head."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from botocore.exceptions import BotoCoreError

from steward_bed.accounting import sacctmgr
from steward_bed.bed import BedError
from tests.e2e.elastic_runs import python_of
from tests.e2e.groups_bed import Access
from tests.e2e.story import Story

TYPE = "ml.g6.12xlarge"
HARDWARE = f"CPUs=48 RealMemory=196608 Gres=gpu:l4:4 Feature={TYPE}"
ROUND_S, KILL_WAIT_S, GRACE_S, SWEEP_S = 1, 2, 1, 5.0


def slurm_conf(round_s: int) -> str:
    """A Slurm whose schedulers look that often."""
    parameters = f"bf_interval={round_s},sched_interval={round_s},batch_sched_delay=0"
    return f"SchedulerParameters={parameters}\nKillWait={KILL_WAIT_S}"


SLURM_CONF = slurm_conf(ROUND_S)
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "quota": {"grace_s": float(GRACE_S), "patience_s": 5.0},
    "checks.memory": {"mode": "off"},
}
"""Little patience; and the machine under the bed has less memory than its nodes pretend to."""
SOON_S = 40.0
_OF_EVICTIONS = ("quota.evicting", "quota.evicted", "quota.called_off", "quota.refused")
USER = "daemon"
"""Who may not do what root may. Not nobody: from 25.11 on Slurm takes that name for no user at all."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A quota that a story made, and what it asked for."""

    id: str
    wish: Mapping[str, object]


@dataclass
class QuotaStory(Story):
    """Words about teams, their jobs and their limits."""

    access: Access = field(default_factory=lambda: Access("", ""))
    left: dict[str, Made] = field(default_factory=dict)
    """By team, what the story before left: one that asks for the same has it at once."""
    mine: dict[str, Made] = field(default_factory=dict)
    is_changed: bool = False
    """The accounting was changed by hand: nothing is left for the next story."""

    @property
    def python(self) -> str:
        """One that jobs can run."""
        return python_of(self.bed)

    @cached_property
    def api(self) -> Any:
        """An AWS client: a call takes milliseconds, and `aws` a second of processor time."""
        return self.access.client()

    def aws(self, *words: str) -> Any:
        """Raises BedError with what it said when it fails."""
        return self.access.aws(self.dir, *words)

    @property
    def looks_s(self) -> float:
        """How long Steward may take to see a job that it makes room for."""
        return SWEEP_S if self.makes_room_itself else 0.0

    @property
    def makes_room_itself(self) -> bool:
        """Steward ends the jobs that are evicted, not Slurm: the weaker mode (before 23.02)."""
        return self._release < (23, 2)

    @property
    def miscounts_parts(self) -> bool:
        """Slurm counts too little in use after a heterogeneous job was submitted."""
        return self._release >= (26, 5)

    @cached_property
    def _release(self) -> tuple[int, int]:
        year, month, *_ = self.bed.run(["sinfo", "-V"]).text.split()[-1].split(".")
        return int(year), int(month)

    def account(self, *teams: str) -> None:
        """Accounts that the site has already; root and USER are in them."""
        for team in teams:
            sacctmgr(self.bed, "add", "account", team, f"Description={team}", "Organization=site")
            sacctmgr(self.bed, "add", "user", f"root,{USER}", f"Account={team}")

    def gpus(self, team: str, gpus: int, *, percent: int = 0, strategy: str = "LendAndBorrow", weight: int = 10) -> str:
        """A quota of so many GPUs for an account that is made for it; its id."""
        self.account(team)
        resources = {"InstanceType": TYPE, "Accelerators": gpus}
        return self.create(team, resources, percent=percent, strategy=strategy, weight=weight)

    def create(
        self,
        team: str,
        *resources: Mapping[str, object],
        percent: int,
        strategy: str = "LendAndBorrow",
        weight: int = 10,
        by_command: bool = False,
    ) -> str:
        """A quota of that team, made by `aws` where that is shown; its id."""
        sharing: dict[str, object] = {"Strategy": strategy}
        if strategy == "LendAndBorrow":
            sharing["BorrowLimit"] = percent
        wish = {
            "Name": "".join(c if c.isalnum() else "-" for c in team),
            "ClusterArn": self.get("/v1/quotas")["cluster_arn"],
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": weight},
            "ComputeQuotaConfig": {"ComputeQuotaResources": list(resources), "ResourceSharingConfig": sharing},
        }
        known = self.left.get(team)
        if by_command:
            id = str(self.aws("create-compute-quota", "--cli-input-json", json.dumps(wish))["ComputeQuotaId"])
        elif known is None:
            id = str(self.api.create_compute_quota(**wish)["ComputeQuotaId"])
        else:
            id = known.id
            if known.wish != wish:
                self._update(id, wish)
        self.mine[team] = Made(id=id, wish=wish)
        return id

    def _update(self, id: str, wish: Mapping[str, object]) -> None:
        words = {name: wish[name] for name in ("ComputeQuotaConfig", "ComputeQuotaTarget")}
        version = self.described(id)["ComputeQuotaVersion"]
        self.api.update_compute_quota(ComputeQuotaId=id, TargetVersion=version, **words)

    def described(self, id: str) -> Mapping[str, Any]:
        """A quota as the API has it. Raises BedError when the head does not answer."""
        try:
            return dict(self.api.describe_compute_quota(ComputeQuotaId=id))
        except BotoCoreError as error:
            raise BedError(f"the head does not answer: {error}") from error

    def delete(self, id: str) -> None:
        self.mine = {team: made for team, made in self.mine.items() if made.id != id}
        self.api.delete_compute_quota(ComputeQuotaId=id)

    def sacctmgr(self, *words: str) -> None:
        """A change of the accounting by hand."""
        self.is_changed = True
        sacctmgr(self.bed, *words)

    def wait_in_force(self, *ids: str, deadline_s: float = SOON_S) -> None:
        """Wait until these are; those that the story before left are deleted, and own and lend nothing from then on."""
        gone = [self.left.pop(team) for team in [*self.left] if team not in self.mine]
        for made in gone:
            with suppress(self.api.exceptions.ResourceNotFound):  # its own story had deleted it
                self.api.delete_compute_quota(ComputeQuotaId=made.id)
        for team in self.left:
            self.wait(f"team {team} uses nothing", partial(self._is_unused, team), SOON_S)
        self.left.clear()
        self.wait(
            "the quotas are in force",
            lambda: {self.described(id)["Status"] for id in ids} <= {"Created", "Updated"},
            deadline_s,
        )

    def run_job(self, team: str, gpus: int, cpus: int, gib: int, *options: str, user: str = "") -> int:
        """A batch job that sleeps until it is ended."""
        size = (f"--gres=gpu:l4:{gpus}", f"--cpus-per-task={cpus}", f"--mem={gib}G", "--nodes=1", "--ntasks=1")
        return self.asks(team, *size, *options, user=user)

    def asks(self, team: str, *options: str, user: str = "") -> int:
        """One that asks for what its options say."""
        script = self.script("sleep.sh", "exec sleep 3600\n")
        return self.submit(script, f"--account={team}", "--requeue", "--output=/dev/null", *options, user=user)

    def sleeps(self, team: str, gpus: int, *options: str, user: str = "") -> int:
        """A job of one CPU that sleeps until it is ended."""
        return self.run_job(team, gpus, 1, 1, *options, user=user)

    def ignores_signals(self, team: str, gpus: int, *options: str, user: str = "") -> int:
        """A job that nothing but SIGKILL ends."""
        script = self.script("deaf.sh", "trap '' TERM CONT\nwhile :; do sleep 1; done\n")
        size = (f"--gres=gpu:l4:{gpus}", "--nodes=1", "--ntasks=1", "--mem=1G", "--output=/dev/null")
        return self.submit(script, f"--account={team}", "--requeue", *size, *options, user=user)

    def running_tasks(self, array: int) -> int:
        return len(self.bed.run(["squeue", "-h", "-r", "-j", str(array), "-t", "RUNNING", "-o", "%i"]).text.split())

    def end(self, *jobs: int) -> None:
        self.bed.run(["scancel", *map(str, jobs)])

    def _is_unused(self, team: str) -> bool:
        """By Steward's tables, and by Slurm's limit of what the team borrows."""
        is_idle = all(row["in_use"] == 0 for row in self.team(team).values())
        return is_idle and not any(int(limit) for limit in self.limits(f"stw-{team}-b").values() if limit.isdigit())

    def end_all(self) -> None:
        """All jobs, and wait until none is left."""
        self.wait("no job is left", self._cancel_all, SOON_S)

    def kept(self) -> dict[str, Made] | None:
        """By team, the quotas of this story that are there; None if others are, too, which it did not make itself."""
        summaries = self.api.list_compute_quotas()["ComputeQuotaSummaries"]
        there = {each["ComputeQuotaId"] for each in summaries if each["Status"] != "Deleting"}
        known = {team: made for team, made in {**self.left, **self.mine}.items() if made.id in there}
        return known if len(known) == len(there) else None

    def delete_quotas(self) -> None:
        """All that are left, and wait until Slurm has nothing of them."""
        self.end_all()
        for each in self.api.list_compute_quotas()["ComputeQuotaSummaries"]:
            if each["Status"] != "Deleting":
                self.delete(each["ComputeQuotaId"])
        self.wait("all quotas are gone", lambda: not self.get("/v1/quotas")["teams"], 3 * SOON_S)

    def _cancel_all(self) -> bool:
        """Again until none is left: scancel passes over a job that our signal has ended and that is requeued next."""
        are_going = self._evictions_under_way()  # asked first: what is put back since is in the queue
        for user in ("root", USER):
            self.bed.run(["scancel", f"--user={user}"], check=False)
        return not are_going and not self.bed.run(["squeue", "--noheader", "--format=%A"]).text.strip()

    def _evictions_under_way(self) -> bool:
        """Whether a job was told to make room and is not back in the queue yet; a head that is away requeues none."""
        last: dict[object, str] = {}
        with suppress(BedError):
            last = {event["job"]: event["kind"] for event in self.events("quota.") if event["kind"] in _OF_EVICTIONS}
        return "quota.evicting" in last.values()

    def round_s(self) -> float:
        """How long a job may wait for a scheduler to look at it: the interval, and the longest look of either."""
        looks = re.findall(r"Max cycle:\s+([0-9]+)", self.bed.run(["sdiag"]).text)
        return ROUND_S + max(map(int, looks)) / 1e6

    def limits(self, qos: str) -> dict[str, str]:
        """GrpTRES of a QOS, as sacctmgr shows it."""
        argv = ["sacctmgr", "--noheader", "--parsable2", "show", "qos", qos, "format=GrpTRES"]
        words = self.bed.run(argv, check=False).text.strip()
        return dict(re.findall(r"([^=,]+)=([^,]+)", words))

    def wait_says(self, job: int, text: str) -> None:
        self.wait(f"explain says of job {job}: {text}", lambda: text in self.explain(str(job)), SOON_S)

    def team(self, name: str) -> dict[str, dict[str, Any]]:
        """Resource -> its row of `steward quota list`."""
        rows = self.get(f"/v1/quotas/{name}")["resources"]
        return {row["resource"]: row for row in rows}

    def tell(self) -> str:
        shown = ["sacctmgr", "--parsable2", "show", "qos", "format=Name,Priority,GrpTRES,Preempt"]
        lines = [Story.tell(self), self.bed.run(shown, check=False).text]
        return "\n".join([*lines, *(f"{job}: {self.explain(str(job))}" for job in self.jobs)])
