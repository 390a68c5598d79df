"""The rules that the adapter and its fake check before they change teams in Slurm: is it ours, is a name one word."""

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


def own_qos_name(qos: str) -> str:
    """Return the name of a QOS of ours. Raise Permanent for any other."""
    if not _OURS.fullmatch(qos):
        raise Permanent(f"not a QOS of ours: '{show(qos)}'")
    return qos


def plain(name: str) -> str:
    """Return the name if it is one plain word. Raise Permanent for one that could be another option."""
    if not _PLAIN.fullmatch(name):
        raise Permanent(f"not a name that Steward gives to Slurm: '{show(name)}'")
    return name


def team(account: str) -> str:
    """Return the account if it can be a team's. Raise Permanent if it cannot."""
    if plain(account) == "root":
        raise Permanent("the root account contains all others: it cannot be a team's")
    return account


def limits(caps: Caps) -> Caps:
    """Return the limits. Raise Permanent for an unknown resource."""
    if wrong := [tres for tres, _ in caps if not _TRES.fullmatch(tres)]:
        raise Permanent(f"not a resource of Slurm: '{show(wrong[0])}'")
    return caps


def not_ours(qos: str, description: str) -> Permanent:
    """Return the error for a QOS that is not ours."""
    return Permanent(f"QOS {qos} is not ours (its description: '{show(description)}'): rename or delete it")


def may_remove_account(name: str, associations: Iterable[Association]) -> None:
    """Raise Stale for an account that has users or accounts of its own."""
    for each in associations:
        if each.account == name and each.user:
            raise Stale(f"account {name} has users ({show(each.user)}): not deleted")
        if each.parent == name and not each.user:
            raise Stale(f"account {name} has accounts of its own ({show(each.account)}): not deleted")


def may_change_while_it_waits(job: Job) -> None:
    """Raise Stale unless the job is pending."""
    if not job.is_pending:
        raise Stale(f"job {job.shown_id} is {job.state.value}, it does not wait")


def may_move(job: Job, qos: Collection[str], allowed: Collection[str]) -> None:
    """Raise Stale unless the job waits, Permanent for a QOS that its account may not use (`allowed`)."""
    may_change_while_it_waits(job)
    if not qos:
        raise Permanent(f"job {job.shown_id} cannot be of no QOS")
    if wrong := [name for name in map(plain, qos) if name not in allowed]:
        raise Permanent(f"account {show(job.account)} may not use QOS {wrong[0]}")


def may_mark(job: Job, restart: int) -> None:
    """Raise Stale if the job has ended, or is in another run."""
    rules.is_the_run(job, restart)
    if job.is_over or job.is_completing:
        raise Stale(f"job {job.shown_id} has ended")


def may_count_nodes(job: Job, action: SetNodeCount) -> None:
    """Raise Stale unless the job waits, Permanent for a bad range."""
    may_change_while_it_waits(job)
    if not 0 < action.least <= action.most:
        raise Permanent(f"not a number of nodes: {action.least}-{action.most}")


def may_cancel(job: Job, restart: int) -> None:
    """Raise Stale unless the job runs, in this run."""
    rules.is_the_run(job, restart)
    rules.may_signal(job)


def task_argument(job: Job) -> str:
    """Return the job's id for a command, as `rules.spelled`, but the array's id for its pending rest."""
    if job.array_job_id is not None and job.array_task is None:
        # Slurm leaves running tasks as they are
        return str(job.array_job_id)
    return rules.job_argument(job)
