"""The known lines at the end of a job's output: a table of patterns, and a pure search for them.

These lines support other evidence and never suffice alone: users can print anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from steward.model.job_report import GRES_LOST, Lean, LogSign
from steward.model.text import printable

MAX_LINES = 200
MAX_LINE = 2000
MAX_SIGNS = 16
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLogSignature:
    """A pattern of a line that hints at the cause of a job's failure.

    `last_word` marks Slurm's own message about the end of the job: this sign counts first, and lines after it come from
    the job's cleanup.
    """

    sign: str
    pattern: re.Pattern[str]
    lean: Lean
    strong: bool = False
    last_word: bool = False
    note: str = ""


def _signature(sign: str, pattern: str, lean: Lean, *, strong: bool = False, note: str = "") -> JobLogSignature:
    return JobLogSignature(sign=sign, pattern=re.compile(pattern, re.IGNORECASE), lean=lean, strong=strong, note=note)


def _signature_of_end(sign: str, pattern: str, lean: Lean, note: str) -> JobLogSignature:
    return replace(_signature(sign, pattern, lean, strong=True, note=note), last_word=True)


_SLURM = r"(?:slurmstepd|srun)(?:-\S+)?: .{0,80}"
INFRA, STORAGE, CASCADE, AMBIGUOUS, USER = Lean.INFRA, Lean.STORAGE, Lean.CASCADE, Lean.AMBIGUOUS, Lean.USER

SIGNATURES: tuple[JobLogSignature, ...] = (
    _signature_of_end("slurm.time_limit", _SLURM + r"DUE TO TIME LIMIT", USER, "the time limit ended it"),
    _signature_of_end("slurm.preempted", _SLURM + r"DUE TO PREEMPTION", AMBIGUOUS, "Slurm made room"),
    _signature_of_end("slurm.node_failure", _SLURM + r"DUE TO NODE FAILURE", INFRA, "Slurm lost a node"),
    _signature_of_end("slurm.oom", _SLURM + r"(?:oom[-_]kill|out of memory)", USER, "the memory limit of the job"),
    _signature_of_end("slurm.cancelled", _SLURM + r"CANCELLED AT", AMBIGUOUS, "a person or Slurm cancelled it"),
    _signature(GRES_LOST, _SLURM + r"Invalid generic resource \(gres\) specification", AMBIGUOUS),
    _signature("gpu.ecc", r"uncorrectable ECC error", INFRA, strong=True, note="CUDA error 214: the rank's own GPU"),
    _signature("gpu.lost", r"GPU (?:is lost|has fallen off the bus)", INFRA, strong=True),
    _signature(
        "gpu.gone",
        r"CUDA.{0,60}(?:no CUDA-capable device is detected|device\S* .{0,40}unavailable)",
        INFRA,
        strong=True,
        note="count the GPUs",
    ),
    _signature(
        "gpu.xid",
        r"NVRM: Xid.{0,60}: (?:48|74|79|92|94|95|119|120|140|143)\b",
        INFRA,
        strong=True,
        note="those that speak for the hardware, as in the kernel's log",
    ),
    _signature("fabric.flushed", r"NET/IB ?: ?Got completion .{0,80}(?:error|status)[ =]*5\b", CASCADE),
    _signature(
        "fabric.completion",
        r"NET/IB ?: ?Got completion .{0,80}(?:error|status)[ =]*\d+",
        INFRA,
        note="status 12: the peer may be the broken one",
    ),
    _signature("fabric.verbs", r"\bibv_\w+ .{0,60}failed|transport retry counter exceeded", INFRA),
    _signature(
        "fabric.efa",
        r"\bfi_(?:cq_read|send|recv)\w*\b.{0,80}(?:fail|err)|\bEFA\b.{0,80}(?:unresponsive|unreachable)",
        INFRA,
    ),
    _signature("user.assert", r"illegal memory access|device-side assert|misaligned address", USER, note="Xid 13, 31"),
    _signature("user.gpu_memory", r"CUDA out of memory|OutOfMemoryError", USER, strong=True),
    _signature(
        "storage",
        r"No space left on device|Read-only file system|Stale (?:NFS )?file handle|Transport endpoint is not connected"
        r"|Input/output error",
        STORAGE,
        note="a shared file system is no single node's fault",
    ),
    _signature(
        "user.python",
        r"^\s*(?:\[[^\]]{1,40}\]:? ?)?(?:\d+: )?"
        r"(?:ImportError|ModuleNotFoundError|SyntaxError|IndentationError|TypeError|NameError|AttributeError|KeyError"
        r"|IndexError|ValueError|AssertionError|FileNotFoundError|PermissionError)\b(?::|$)"
        r"|\bsize mismatch for \S+|error: unrecognized arguments",
        USER,
        strong=True,
    ),
    _signature(
        "user.shell",
        r"^\S{1,80}: line \d+: .{0,200}(?:command not found|No such file or directory|Permission denied)$",
        USER,
    ),
    _signature("user.nan", r"\b(?:loss|grad\w*)\b.{0,30}\b(?:nan|inf)\b", USER, note="bad data, or a bad chip"),
    _signature("crash.library", r"segfault at .{0,80} in lib(?:nccl|cuda)|Segmentation fault", AMBIGUOUS),
    _signature("crash.bus", r"\bBus error\b", AMBIGUOUS, note="/dev/shm full or a file system lost, more than memory"),
    _signature(
        "nccl.watchdog",
        r"watchdog.{0,120}(?:caught collective operation timeout|timed out)",
        AMBIGUOUS,
        note="the rank that is missing from the collective is the suspect",
    ),
    _signature(
        "nccl.peer",
        r"NCCL (?:WARN|ERROR).{0,120}(?:unhandled system error|remote process exited|connection closed)",
        CASCADE,
    ),
    _signature("peer.gone", r"Connection reset by peer|Broken pipe|Connection closed by peer|Socket Timeout", CASCADE),
)
"""The patterns; the first that matches a line names it. Each repetition is bounded, so that no text makes them slow."""


def signs_in(text: str) -> tuple[LogSign, ...]:
    """Return the known lines among the last MAX_LINES of `text`, one of each sign, the most telling first.

    Slurm's own message about the end comes first, then the possible causes by their line number, which is `order`. A
    line that only follows from another failure (a cascade) is left out if there is any other cause.
    """
    lines = text.splitlines()[-MAX_LINES:]
    found = list(_first_of_each_sign(_known_lines(lines)))
    endings = [sign for sign, known in found if known.last_word]
    last = endings[0].order if endings else len(lines)
    begun = [sign for sign, known in found if not known.last_word and sign.order < last]
    first = [sign for sign in begun if sign.lean is not Lean.CASCADE] or begun
    return tuple([*endings[:1], *first][:MAX_SIGNS])


def _known_lines(lines: list[str]) -> Iterator[tuple[LogSign, JobLogSignature]]:
    for order, line in enumerate(lines):
        short = line[:MAX_LINE]
        known = next((one for one in SIGNATURES if one.pattern.search(short)), None)
        if known is not None:
            shown = printable(short.strip(), _SHOWN)
            yield LogSign(sign=known.sign, lean=known.lean, strong=known.strong, line=shown, order=order), known


def _first_of_each_sign(found: Iterator[tuple[LogSign, JobLogSignature]]) -> Iterator[tuple[LogSign, JobLogSignature]]:
    """Yield only the first line of each sign."""
    seen: set[str] = set()
    for sign, known in found:
        if sign.sign not in seen:
            seen.add(sign.sign)
            yield sign, known
