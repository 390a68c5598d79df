"""Reasons of nodes: those that Slurm itself writes, with the response to each, and the commands of admins.

The commands are `Action:Replace` and `Action:Reboot`, to the letter. The numbers are the rows of the catalogue that the
tests hold this table to. A reason counts as Slurm's own only if it was written under Slurm's login name; the same words
by a person leave the node alone.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from steward.model.case import Case
from steward.model.health import Advice, Finding
from steward.model.mark import first_token, is_slurms_reboot
from steward.model.node import Node, Reason


class Kind(Enum):
    """The subject of a reason."""

    INFRA = "infra"
    """The node is likely bad."""
    SILENT = "silent"
    CONFIG = "config"
    """slurm.conf or gres.conf and the node do not agree."""
    LIFECYCLE = "lifecycle"
    """As intended: the node is being powered or rebooted."""
    STORAGE = "storage"
    WORKLOAD = "workload"
    """A job caused it."""


class Response(Enum):
    """The answer to a node with this reason."""

    LEAVE = "left alone, it passes"
    WATCH = "judged by its agent and a second source"
    TELL = "reported, a person must look"
    CHECK = "given back when its checks pass, else the next rung"
    LAUNCH = "given back when its checks pass and a job of Steward's own ran there, else the next rung"
    RESTART_SLURMD = "slurmd is restarted"
    REBOOT = "rebooted"
    REVIVE = "given back when its checks pass; without an agent it is replaced"
    COUNT = "rebooted where the machine served before with all it has; else reported"


class Author(Enum):
    """The login under which the reason is written."""

    CONTROLLER = "slurmctld, as SlurmUser"
    NODE = "slurmd or slurmstepd, as root"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRow:
    """One of Slurm's own reasons and the response to it.

    `name` is part of the check's id (`slurm.kill_task_failed`). From `shared_from` nodes within minutes on, the cause
    is common, such as a script; None: from the usual number on. A bad finding of one of `checks` keeps the node out of
    service, even if the mode of the check is only to report. `of_jobs`: one user's job alone can bring the reason
    about, by processes that do not end or a full disk.
    """

    number: int
    name: str
    pattern: re.Pattern[str]
    kind: Kind
    response: Response
    author: Author = Author.CONTROLLER
    shared_from: int | None = None
    checks: tuple[str, ...] = ()
    of_jobs: bool = False

    @property
    def check(self) -> str:
        """Return the id of the check for this reason."""
        return f"slurm.{self.name}"


_INFRA, _CONFIG, _LIFECYCLE = Kind.INFRA, Kind.CONFIG, Kind.LIFECYCLE
_STORAGE, _WORKLOAD = Kind.STORAGE, Kind.WORKLOAD
_SPOOL, _STUCK = ("slurm.spool", "disk", "mounts"), ("os.dstate",)
_GPUS, _CPUS = ("slurm.gres", "gpu"), ("cpu.topology",)
_SCRIPT_BUG = 4
"""From this many nodes at once, the script is to blame."""


def _row(
    number: int,
    name: str,
    pattern: str,
    kind: Kind,
    response: Response,
    author: Author = Author.CONTROLLER,
    shared_from: int | None = None,
    checks: tuple[str, ...] = (),
    *,
    of_jobs: bool = False,
) -> ReasonRow:
    """Return a row of the table."""
    return ReasonRow(
        number=number,
        name=name,
        pattern=re.compile(pattern + r"\Z"),
        kind=kind,
        response=response,
        author=author,
        shared_from=shared_from,
        checks=checks,
        of_jobs=of_jobs,
    )


ROWS = (
    _row(1, "not_responding", r"Not responding", Kind.SILENT, Response.WATCH),
    _row(2, "rebooted", r"Node unexpectedly rebooted", _INFRA, Response.CHECK),
    _row(3, "resume_timeout", r"ResumeTimeout reached", _INFRA, Response.REVIVE),
    _row(4, "reboot_timeout", r"reboot timed out", _INFRA, Response.REBOOT),
    _row(5, "reboot_complete", r"reboot complete", _LIFECYCLE, Response.CHECK),
    _row(6, "reboot_issued", r"reboot issued|reboot requested|Reboot ASAP", _LIFECYCLE, Response.LEAVE),
    _row(7, "power_down_asap", r"POWER_DOWN_ASAP", _LIFECYCLE, Response.LEAVE),
    _row(
        8,
        "kill_task_failed",
        r"Kill task failed( \(JobId=.{1,80}\))?",
        _WORKLOAD,
        Response.CHECK,
        Author.NODE,
        checks=_STUCK,
        of_jobs=True,
    ),
    _row(
        9,
        "step_not_running",
        r"Job step not running( \(JobId=.{1,80}\))?",
        _WORKLOAD,
        Response.CHECK,
        Author.NODE,
        of_jobs=True,
    ),
    _row(10, "prolog_error", r"Prolog error", _INFRA, Response.LAUNCH, shared_from=_SCRIPT_BUG),
    _row(11, "job_env", r"Job env setup error", _CONFIG, Response.TELL),
    _row(12, "epilog_error", r"Epilog error", _INFRA, Response.LAUNCH, shared_from=_SCRIPT_BUG),
    _row(13, "prolog_epilog", r"Prolog/Epilog failure", _INFRA, Response.LAUNCH, shared_from=_SCRIPT_BUG),
    _row(14, "batch_complete", r"batch job complete failure", _STORAGE, Response.LAUNCH, checks=_SPOOL, of_jobs=True),
    _row(15, "duplicate_jobid", r"Duplicate jobid", _CONFIG, Response.RESTART_SLURMD),
    _row(
        16,
        "spool_full",
        r"SlurmdSpoolDir is full",
        _STORAGE,
        Response.LAUNCH,
        Author.NODE,
        checks=_SPOOL,
        of_jobs=True,
    ),
    _row(17, "switch_postfini", r"switch_g_job_postfini failed", _INFRA, Response.REBOOT, Author.NODE),
    _row(18, "core_count", r"Bad core count", _CONFIG, Response.TELL),
    _row(19, "no_address", r"NO NETWORK ADDRESS FOUND", _CONFIG, Response.TELL),
    _row(20, "low_sockets", r"Low socket\*core\*thread count.{0,160}", _CONFIG, Response.COUNT, checks=_CPUS),
    _row(21, "low_cpus", r"Low CPUs.{0,160}", _CONFIG, Response.COUNT, checks=_CPUS),
    _row(22, "low_memory", r"Low RealMemory.{0,160}", _INFRA, Response.COUNT, checks=("memory",)),
    _row(23, "low_tmp", r"Low TmpDisk.{0,160}", _STORAGE, Response.COUNT, checks=("disk", "mounts")),
    _row(24, "core_spec", r"CoreSpec differ", _CONFIG, Response.TELL),
    _row(25, "gres_unpack", r"Could not unpack gres data", _CONFIG, Response.TELL),
    _row(
        26,
        "gres_lower",
        r"gres/\S+ count reported lower than configured \(.{1,60}\)",
        _INFRA,
        Response.COUNT,
        checks=_GPUS,
    ),
    _row(
        27,
        "gres_changed",
        r"gres/\S+ count changed and jobs are using them \(.{1,60}\)",
        _INFRA,
        Response.COUNT,
        checks=_GPUS,
    ),
    _row(28, "gres_low", r"gres/\S+ count too low \(.{1,60}\)", _INFRA, Response.COUNT, checks=_GPUS),
    _row(29, "gres_type", r"gres/\S+ type \(.{1,80}\) reported but not configured", _CONFIG, Response.TELL),
    _row(30, "gres_type_changed", r"gres/\S+ type changed and jobs are using them", _CONFIG, Response.TELL),
    _row(31, "gres_sockets", r"GRES .{0,160}doesn't match socket boundaries.{0,160}", _CONFIG, Response.TELL),
    _row(32, "restricted_cores", r"RestrictedCoresPerGPU=.{0,200}", _CONFIG, Response.TELL),
    _row(33, "features", r"Reported active features \(.{0,200}\) are not a superset of .*", _CONFIG, Response.TELL),
    _row(34, "dynamic", r"Failed to (parse dynamic_conf nodeline|set topology ).{0,200}", _CONFIG, Response.TELL),
    _row(35, "node_features", r"Failed to set node feature\(s\): .{0,200}", _CONFIG, Response.TELL),
)
"""Row 36, the text of `DownNodes=` in slurm.conf, is the site's own and may be anything.

Like any reason that is not in the table, it counts as a person's, and the node is left alone.
"""

ACTING = (Response.CHECK, Response.LAUNCH, Response.RESTART_SLURMD, Response.REBOOT, Response.REVIVE, Response.COUNT)


def row_of(reason: Reason, slurm_user: str) -> ReasonRow | None:
    """Return the row of a reason that Slurm itself wrote; None for a person's, a tool's and our own."""
    row = row_of_text(reason.text)
    if row is None or is_slurms_reboot(reason.text):
        return row  # a reboot by Slurm has the login of the person who ordered it
    authors = {slurm_user} if row.author is Author.CONTROLLER else {slurm_user, "root"}
    return row if reason.user in authors else None


@lru_cache(maxsize=4096)
def row_of_text(text: str) -> ReasonRow | None:
    """Return the row of these words, whoever wrote them; None if there is none."""
    written = first_token(text)
    return next((row for row in ROWS if row.pattern.match(written)), None)


BATCH_BROKEN = "slurm.batch_complete"
"""The check of nodes whose slurmstepd could not begin a script.

Slurm calls such a job complete, with exit code 0.
"""
LAUNCH_FAILED = "slurm.launch_failed"
"""The check of nodes on which Slurm could not start jobs, and said so in the jobs' reasons alone."""
LAUNCHES = frozenset({LAUNCH_FAILED, *(row.check for row in ROWS if row.response is Response.LAUNCH)})
"""The checks of nodes on which jobs could not begin or end, which no check of their agents shows."""


def breaks_launches(case: Case) -> bool:
    """Return whether the case is about jobs that could not begin or end, which no check on the node shows."""
    return case.check in LAUNCHES or _response(case) is Response.LAUNCH


def speaks_of(case: Case, finding: Finding) -> bool:
    """Return whether the finding belongs to the reason for which Slurm took the node out (`ReasonRow.checks`)."""
    row = row_of_text(case.command) if case.command else None
    return row is not None and any(finding.check == one or finding.check.startswith(f"{one}.") for one in row.checks)


def _response(case: Case) -> Response | None:
    """Return the response to the reason of the case; None if it has none."""
    row = row_of_text(case.command) if case.command else None
    return row.response if row is not None else None


def slurms_own(node: Node, slurm_user: str) -> ReasonRow | None:
    """Return the row of a node that Slurm itself took out of service; None if it did not."""
    if node.reason is None or not (node.is_drain or node.is_down):
        return None
    return row_of(node.reason, slurm_user)


COMMANDS = {"Action:Replace": Advice.REPLACE, "Action:Reboot": Advice.REBOOT}


def ordered(node: Node) -> str:
    """Return the command with which the reason of a node out of service begins; empty if there is none."""
    if node.reason is None or not (node.is_drain or node.is_down):
        return ""
    return _order(node.reason.text)


def near_miss(node: Node) -> str:
    """Return the command that the admin may have meant if the reason is nearly one, else empty."""
    if node.reason is None or ordered(node) or node.mark is not None:
        return ""
    if not (node.is_drain or node.is_down):
        return ""
    return _nearly(node.reason.text)


@lru_cache(maxsize=4096)
def _order(reason: str) -> str:
    """Return the command that the reason begins with; empty if it is none."""
    text = first_token(reason)
    return text if text in COMMANDS else ""


@lru_cache(maxsize=4096)
def _nearly(reason: str) -> str:
    """Return the command that the reason nearly is; empty if it is not."""
    squeezed = "".join(reason.split()).lower().replace("_", "").replace("-", "")
    return next((text for text in COMMANDS if squeezed.startswith(text.lower()) or _similar(squeezed, text)), "")


def _similar(squeezed: str, text: str) -> bool:
    """Return whether the words are a common misspelling of the command."""
    verb = text.split(":")[1].lower()
    return squeezed in (verb, f"action{verb}", f"action={verb}", f"actions:{verb}")
