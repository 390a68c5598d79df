"""Questions that the adapter and its fake ask before they change teams in Slurm: is it ours, and is it one word."""

import re
from collections.abc import Collection, Iterable

from steward.adapters.process import show
from steward.adapters.slurm import rules
from steward.model.accounting import Association
from steward.model.action import Caps, SetNodeCount
from steward.model.job import Job
from steward.ports import Permanent, Stale

_OURS = re.compile(r"stw-[a-z0-9][a-z0-9_.-]{0,59}-[gb]")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,199}")
_TRES = re.compile(r"[a-z]+(/[A-Za-z0-9_.:-]+)?")


def ours(qos: str) -> str:
    """Raises Permanent for the name of a QOS that we would not have made."""
    if not _OURS.fullmatch(qos):
        raise Permanent(f"not a QOS of ours: {show(qos)!r}")
    return qos


def plain(name: str) -> str:
    """Raises Permanent for a name that would be more than one word, or another option."""
    if not _PLAIN.fullmatch(name):
        raise Permanent(f"not a name that Steward gives to Slurm: {show(name)!r}")
    return name


def team(account: str) -> str:
    """Raises Permanent for an account that is no team's."""
    if plain(account) == "root":
        raise Permanent("the root account is everybody's: no limits of a team")
    return account


def limits(caps: Caps) -> Caps:
    """Raises Permanent for what is no resource of Slurm."""
    if wrong := [tres for tres, _ in caps if not _TRES.fullmatch(tres)]:
        raise Permanent(f"not a resource of Slurm: {show(wrong[0])!r}")
    return caps


def not_ours(qos: str, description: str) -> Permanent:
    return Permanent(f"QOS {qos} is not ours (its description: {show(description)!r}): rename or delete it")


def may_remove_account(name: str, associations: Iterable[Association]) -> None:
    """Raises Stale for one that has users or accounts of its own."""
    for each in associations:
        if each.account == name and each.user:
            raise Stale(f"account {name} has users ({show(each.user)}): not deleted")
        if each.parent == name and not each.user:
            raise Stale(f"account {name} has accounts of its own ({show(each.account)}): not deleted")


def may_change_while_it_waits(job: Job) -> None:
    """Raises Stale unless the job is pending."""
    if not job.is_pending:
        raise Stale(f"job {job.id} is {job.state.value}, it does not wait")


def may_move(job: Job, qos: Collection[str], allowed: Collection[str]) -> None:
    """Raises Stale unless the job waits, Permanent for a QOS that its account may not use (`allowed`)."""
    may_change_while_it_waits(job)
    if not qos:
        raise Permanent(f"job {job.id} cannot be of no QOS")
    if wrong := [name for name in map(plain, qos) if name not in allowed]:
        raise Permanent(f"account {show(job.account)} may not use QOS {wrong[0]}")


def may_mark(job: Job, restart: int) -> None:
    """Raises Stale when the job has ended, or is in another run."""
    rules.is_the_run(job, restart)
    if job.is_over or job.is_completing:
        raise Stale(f"job {job.id} has ended")


def may_count_nodes(job: Job, action: SetNodeCount) -> None:
    """Raises Stale unless the job waits, Permanent for what is no range."""
    may_change_while_it_waits(job)
    if not 0 < action.least <= action.most:
        raise Permanent(f"not a number of nodes: {action.least}-{action.most}")


def may_cancel(job: Job, restart: int) -> None:
    """Raises Stale unless the job runs, in this run."""
    rules.is_the_run(job, restart)
    rules.may_signal(job)


def spelled(job: Job) -> str:
    """The job's id for a command, as `rules.spelled`, but the pending rest of an array is named by the array's id:
    Slurm leaves the tasks that run as they are."""
    if job.array_job_id is not None and job.array_task is None:
        return str(job.array_job_id)
    return rules.spelled(job)
