"""AccountingPort by `sacctmgr` and `scontrol`.

Tried on real Slurm 22.05.8 unless said:

- slurmctld's own copy (`scontrol show assoc_mgr`) has limits, use and priorities of every QOS, also while slurmdbd is
  down; descriptions, Preempt lists, and which account may use which QOS are in slurmdbd alone. They change rarely and
  are read every 10 s and after each change of ours.
- `modify qos where name=N description=D set ...` changes no QOS with another description: so the database itself
  checks, at the moment of the change, that the QOS is ours. `Nothing modified` (exit status 1) is also the answer for a
  missing QOS (24.11: `Request didn't affect anything`). `add` of an existing one changes nothing and says `Nothing new
  added` (24.11: `Already existing account red on cluster hpc`).
- `modify account where name=A` without `cluster=` changes A on every cluster of the database. `qos+=`, `qos-=`,
  `defaultqos=` (-1: none) and `GrpTRES=` (a TRES at -1: no limit) may stand in one command. A command after which some
  user could not use his default QOS is refused as a whole (22.05: with exit status 0): an account's default that is not
  in a user's own list, or `qos-=` of a user's own default. So `qos+=`, `defaultqos=` and `qos-=` are sent one by one.
  Users without a default of their own show their account's. An account that lost its last QOS does not get back its
  parent's: its users cannot submit any more (`Invalid qos specification`).
- An account that inherits its list of QOS stores its changes to the list (`+5,-2`). Deleting a QOS removes it from the
  changes of all accounts, with the commas on both sides: `+5,-2,-4` becomes `+5-4`, and `qos-=` and `qos+=` then change
  nothing, with exit status 0. So after each of them the list is read back, and written as a whole if it is wrong. An
  empty list (`qos=`) inherits that of the account above.
- `delete account` with `cluster=` takes the account from that cluster and leaves its name; without, from all clusters.
- A limit of a job's QOS takes the place of the limits of its user and accounts for the same TRES, which
  still count the job. So an account's limit binds jobs in a QOS without a limit. A job that waits in a QOS which its
  account lost does not start (`InvalidQOS`, or the reason that it had), unless an administrator gave it that QOS.
- A QOS that is some account's default cannot be deleted (`Changes Discarded`). A QOS of jobs can, and its jobs keep a
  QOS that no longer exists: so it is checked before that it has none. An account with jobs cannot (`Job(s) active`).
- An administrator may give a waiting job any QOS, also one that its account may not use: Slurm does not check
  that, so this module does. The QOS of a running job cannot be changed (`Job is no longer pending execution`).
- A priority that was set directly outlasts a requeue; `release` gives a job back to Slurm's own reckoning, whether it
  waits or runs, in 22.05, 24.11 and 26.05 (tried; the source of slurmctld is the same in between): with a set
  priority the job is spared by preemption; released, it is preempted next.
- Lists of QOS (24.11) are used from 25.11 on: 24.11.5 counts a job that backfill started, or was requeued, in another
  QOS of its list; corrected in 25.11 and 26.05 ("Always update job->qos_id"). A running job with a list shows the QOS
  that it runs in; requeued, it has its list again.
- An edit takes 45 ms on an idle machine, and is in force in slurmctld at once. slurmdbd dead: `Connection refused`
  within 20 ms. slurmdbd hanging: sacctmgr waits for ever, so it has a time limit of its own.
- Names: Slurm takes `a|b` and blanks for an account, `u|v` for a user, and several lines for a description.
"""

import contextlib
import pwd
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from steward.adapters.process import Completed, Failed
from steward.adapters.slurm import accounting_text as text
from steward.adapters.slurm import rules, team_rules
from steward.adapters.slurm.accounting_text import Tables
from steward.adapters.slurm.commands import MAX_BYTES, SlurmCommands, nothing_changed
from steward.adapters.slurm.team_rules import own_qos_name, plain
from steward.adapters.slurm.words import settings_in, words_of
from steward.model.accounting import ACCOUNT_MARK, QOS_MARK, Accounting, Association
from steward.model.action import CancelJob, Caps, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from steward.model.ids import JobId
from steward.model.job import Job
from steward.ports import Retryable, Stale

_DEFAULT_LOST = re.compile(r"don't have access to their default qos")
"""sacctmgr's words for a change that it refused as a whole. On 22.05 with exit status 0."""
_SLURMDBD_S = 5.0
_TABLES_S = 10.0
_CONFIG_S = 60.0
_EDIT_S = 0.1
"""The least time between two edits: each takes locks in slurmctld, and makes it look at all jobs."""


class SlurmAccounting:
    """AccountingPort by commands. Safe to call from several threads. `jobs` reads jobs as SlurmPort.jobs does."""

    def __init__(
        self,
        *,
        conf: str = "",
        jobs: Callable[[Collection[JobId]], Mapping[JobId, Job]],
        timeout_s: float = 10.0,
    ) -> None:
        self._commands = SlurmCommands(conf=conf, timeout_s=timeout_s, max_bytes=MAX_BYTES)
        self._jobs = jobs
        self._lock = threading.Lock()
        self._tables: tuple[float, Tables] | None = None
        """When slurmdbd's tables were read, and the tables; None after an edit."""
        self._before: Tables | None = None
        """The tables that slurmdbd gave last, however old."""
        self._config: tuple[float, Mapping[str, str]] | None = None
        self._last_edit = 0.0
        self._uids: dict[str, int] = {}

    def picture(self) -> Accounting:
        config = self._settings()
        cluster = config.get("ClusterName", "")
        version = self._commands.version().release
        enforce = words_of(config.get("AccountingStorageEnforce", ""))
        tracked = words_of(config.get("AccountingStorageTRES", ""))
        can = text.capabilities(config, version)
        if config.get("AccountingStorageType", "") != "accounting_storage/slurmdbd":
            trouble = "Slurm has no accounting: AccountingStorageType=accounting_storage/slurmdbd is not in slurm.conf"
            return Accounting(at=time.time(), cluster=cluster, reachable=False, trouble=trouble, can=can)
        at = time.time()
        in_force = text.qos_in_force(self._commands.read("scontrol", "--oneliner", "show", "assoc_mgr", "flags=qos"))
        tables, trouble = self._read_tables(cluster)
        known = tables is not None
        tables = tables or Tables()
        return Accounting(
            at=at,
            cluster=cluster,
            reachable=not trouble,
            trouble="" if known else trouble,
            enforce=enforce,
            tracked=tracked,
            can=can,
            accounts=tables.accounts,
            associations=tables.associations,
            qos=text.with_details(in_force, tables.qos),
        )

    def set_qos(self, action: SetQos) -> None:
        name, caps = own_qos_name(action.qos), _caps(action.caps)
        words = [*caps, *_fields(action)]
        if words and self._modify("qos", [f"name={name}", f"description={QOS_MARK}"], words):
            return
        if (described := self._description_of(name)) is None:
            new = [*_caps(tuple((tres, limit) for tres, limit in action.caps if limit is not None)), *_fields(action)]
            self._edit("add", "qos", name, f"description={QOS_MARK}", *new)
        elif described != QOS_MARK:
            raise team_rules.not_ours(name, described)

    def drop_qos(self, action: DropQos) -> None:
        name = own_qos_name(action.qos)
        in_force = self._commands.read("scontrol", "--oneliner", "show", "assoc_mgr", "flags=qos", f"qos={name}")
        if text.jobs_of_qos(in_force, name) and (jobs := self._jobs_in(name)):
            raise Stale(f"{jobs} jobs are of QOS {name}: not deleted")
        table = self._sacctmgr("show", "association", f"format={text.ASSOCIATION_COLUMNS}")
        if who := text.who_may_use(name, table):
            raise Stale(f"QOS {name} is not deleted: {who}")
        if not self._edit("delete", "qos", "where", f"name={name}", f"description={QOS_MARK}"):
            described = self._description_of(name)
            if described is not None:
                raise team_rules.not_ours(name, described)

    def _jobs_in(self, qos: str) -> int:
        """Return the number of jobs in a QOS."""
        # Slurm 22.05 counts for ever a job that was cancelled between its requeue and the end of its epilog
        lists = self._commands.read("squeue", "--noheader", "--all", "--format=%q").splitlines()
        return sum(qos in line.strip().split(",") for line in lists)

    def set_team(self, action: SetTeam) -> None:
        account = team_rules.team(action.account)
        drop = ",".join(sorted(map(own_qos_name, action.drop)))
        add = ",".join([*sorted(map(own_qos_name, action.add)), *([plain(action.keep)] if action.keep else [])])
        default = action.default_qos
        parts = [
            [*_caps(action.caps), *([f"qos+={add}"] if add else [])],
            [] if default is None else [f"defaultqos={plain(default) if default else -1}"],
            [f"qos-={drop}"] if drop else [],
        ]
        cluster = self._settings().get("ClusterName", "")
        for part in parts:
            if part and not self._modify("account", [f"name={account}", f"cluster={cluster}"], part):
                raise Stale(f"there is no account {account} on this cluster: `steward quota setup --apply` makes it")
        if add or drop:
            self._mend_list(account, cluster, frozenset(filter(None, add.split(","))), action.drop)

    def _mend_list(self, account: str, cluster: str, add: frozenset[str], drop: frozenset[str]) -> None:
        """Write an account's list of QOS as a whole if Slurm did not add and remove what it was told to."""
        has = self._account_association(account, cluster)
        if has is None or (add <= has.qos and not drop & has.qos):
            return
        above, wanted = self._account_association(has.parent, cluster), (has.qos | add) - drop
        names = [] if above is not None and wanted == above.qos else sorted(map(plain, wanted))
        self._modify("account", [f"name={account}", f"cluster={cluster}"], [f"qos={','.join(names)}"])

    def _account_association(self, name: str, cluster: str) -> Association | None:
        words = ("where", f"account={plain(name)}", f"cluster={cluster}", f"format={text.ASSOCIATION_COLUMNS}")
        found = text.associations(self._sacctmgr("show", "association", *words), cluster)
        return next((each for each in found if not each.user and not each.partition), None)

    def make_account(self, name: str) -> None:
        cluster = self._settings().get("ClusterName", "")
        words = [f"cluster={cluster}", f"organization={ACCOUNT_MARK}", "description=steward: team"]
        self._edit("add", "account", team_rules.team(name), *words)

    def remove_account(self, name: str) -> None:
        account, cluster = team_rules.team(name), self._settings().get("ClusterName", "")
        tables = Tables.read(self._sacctmgr, cluster)
        team_rules.may_remove_account(account, tables.associations)
        if account in tables.accounts and tables.accounts[account].organization != ACCOUNT_MARK:
            raise Stale(f"account {account} was not made by Steward: left alone")
        words = ["delete", "account", "where", f"name={account}", f"organization={ACCOUNT_MARK}"]
        self._edit(*words, f"cluster={cluster}")
        if not self._sacctmgr("show", "association", "where", f"account={account}", "format=cluster,user").strip():
            self._edit(*words)

    def move_job(self, action: MoveJob) -> None:
        """Set the QOS of a waiting job; of an array, of its waiting tasks."""
        job = self._job(action.job)
        team_rules.may_move(job, action.qos, self._allowed_qos(job.account))
        is_rest = job.array_job_id is not None and job.array_task is None
        with contextlib.suppress(*([Stale] if is_rest else [])):
            self._commands.write("update", f"jobid={team_rules.task_argument(job)}", f"qos={','.join(action.qos)}")

    def mark_job(self, action: MarkJob) -> None:
        job = self._job(action.job)
        team_rules.may_mark(job, action.restart)
        name = rules.job_argument(job)
        if action.priority is not None:
            self._commands.write("update", f"jobid={name}", f"priority={action.priority}")
        elif not job.is_held:
            self._commands.write("release", name)

    def set_node_count(self, action: SetNodeCount) -> None:
        job = self._job(action.job)
        team_rules.may_count_nodes(job, action)
        self._commands.write(
            "update", f"jobid={team_rules.task_argument(job)}", f"numnodes={action.least}-{action.most}"
        )

    def cancel_job(self, action: CancelJob) -> None:
        job = self._job(action.job)
        team_rules.may_cancel(job, action.restart)
        self._commands.run("scancel", rules.job_argument(job))

    def _job(self, id: JobId) -> Job:
        return rules.require_job(self._jobs({id}), id)

    def _allowed_qos(self, account: str) -> frozenset[str]:
        """Return the QOS that jobs of the account may have."""
        tables, trouble = self._read_tables(self._settings().get("ClusterName", ""))
        if tables is None:
            raise Retryable(trouble)
        return frozenset().union(*(a.qos for a in tables.associations if a.account == account))

    def _description_of(self, qos: str) -> str | None:
        """Return the description of this QOS; None if there is no such QOS."""
        table = self._sacctmgr("show", "qos", "where", f"name={qos}", f"format={text.QOS_COLUMNS}")
        rows = text.rows(table, 6)
        return next((row[-1] for row in rows if row[0] == qos), None)

    def _modify(self, kind: str, where: list[str], words: list[str]) -> bool:
        return self._edit("modify", kind, "where", *where, "set", *words)

    def _edit(self, *words: str) -> bool:
        """Make one change, not more than ten a second. Return False if there was nothing to change."""
        with self._lock:
            time.sleep(max(0.0, min(_EDIT_S, self._last_edit + _EDIT_S - time.time())))
            try:
                done = self._commands.run("sacctmgr", "--immediate", *words, timeout_s=_SLURMDBD_S)
            except Failed as failed:
                _check_default_qos(words, failed.completed)
                if not nothing_changed(failed):
                    raise
                return False
            finally:
                self._last_edit, self._tables = time.time(), None
        _check_default_qos(words, done)
        return True

    def _sacctmgr(self, *words: str) -> str:
        answer = self._commands.run("sacctmgr", "--parsable2", "--noheader", *words, timeout_s=_SLURMDBD_S)
        if answer.truncated:
            raise Retryable(f"the answer of `sacctmgr {' '.join(words)}` is too long")
        return answer.text

    def _read_tables(self, cluster: str) -> tuple[Tables | None, str]:
        """Return slurmdbd's tables, at most 10 s old; if slurmdbd does not answer, older ones and the trouble."""
        known = self._tables
        if known is not None and time.time() - known[0] < _TABLES_S:
            return known[1], ""
        began = time.time()
        try:
            read = self._with_uids(Tables.read(self._sacctmgr, cluster))
        except Retryable as error:
            return self._before, f"slurmdbd does not answer: {error}"
        self._before = read
        if self._last_edit < began:
            self._tables = (began, read)
        return read, ""

    def _with_uids(self, tables: Tables) -> Tables:
        """Return the tables with the uids of users, because jobs have only those."""
        for user in {each.user for each in tables.associations if each.user and each.limits} - self._uids.keys():
            with contextlib.suppress(KeyError):
                self._uids[user] = pwd.getpwnam(user).pw_uid
        known = (replace(a, uid=self._uids.get(a.user)) if a.user and a.limits else a for a in tables.associations)
        return replace(tables, associations=tuple(known))

    def _settings(self) -> Mapping[str, str]:
        """Return `scontrol show config`, at most a minute old."""
        known = self._config
        if known is not None and time.time() - known[0] < _CONFIG_S:
            return known[1]
        found = settings_in(self._commands.read("scontrol", "show", "config"))
        self._config = (time.time(), found)
        return found


def _check_default_qos(words: Sequence[str], done: Completed | None) -> None:
    """Raise Stale if sacctmgr refused to take a user's default QOS away, with whatever exit status."""
    if done is not None and _DEFAULT_LOST.search(done.text + done.error_text):
        raise Stale(f"sacctmgr {words[0]} {words[1]}: a user could not use the new default QOS")


def _caps(caps: Caps) -> list[str]:
    """Return the limits as one word for sacctmgr; no word if there are none."""
    limits = ",".join(f"{tres}={-1 if limit is None else max(limit, 0)}" for tres, limit in team_rules.limits(caps))
    return [f"GrpTRES={limits}"] if limits else []


def _fields(action: SetQos) -> list[str]:
    """Return the other fields as words for sacctmgr."""
    words = [] if action.priority is None else [f"priority={action.priority}"]
    if action.preempts is not None:
        words.append(f"preempt={','.join(sorted(map(plain, action.preempts)))}")
    if action.preempt_mode is not None:
        words.append(f"preemptmode={plain(action.preempt_mode)}")
    if action.grace_s is not None:
        words.append(f"gracetime={max(action.grace_s, 0)}")
    return words
