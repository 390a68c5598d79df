"""The words of `--auto-resume=`: how a job is resumed. The shim reads the same grammar (spank/options.c)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from steward.model.bounds import MaxLen, Parsed

MAX_TEXT = 400
USAGE = (
    "use 0, 1 or any:N with N from 1 to 1000, then ,max=N ,stalls=N ,age=SECONDS ,backoff=0|1 ,codes=C:C ,timeout=0|1 "
    ",requeue=0|1 ,hang=0|1|SECONDS ,stacks=SIGNAL ,checkpoint=PATH ,quiet=0|1"
)

_MODE = re.compile(r"^(?:(?P<evidence>[01])|any:(?P<any>[1-9][0-9]{0,3}))\Z")
_PATH = re.compile(r"^/[A-Za-z0-9._/+@%:=-]{0,254}\Z")
STACK_SIGNALS = frozenset({"USR1", "USR2", "HUP", "QUIT", "URG"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeMode:
    """The submitter's request: `1` (on evidence) or `any:N` (up to N times without), and further options.

    None (empty for texts): the site's setting. Times are seconds.
    """

    text: str
    on: bool
    without_evidence: int = 0
    max_resumes: int | None = None
    stalls: int | None = None
    """The number of resumes in a row that may bring no new checkpoint."""
    age_s: float | None = None
    """The age below which a run is not resumed without evidence."""
    backoff: bool | None = None
    codes: frozenset[int] = frozenset()
    """Exit codes after which the job is not tried again."""
    timeout: bool | None = None
    """Whether the job continues after its time limit."""
    requeue: bool | None = None
    """Whether the job may be requeued; otherwise only its steps run again in place."""
    hang: bool | None = None
    hang_s: float | None = None
    """The time without progress after which the job hangs; None: learnt."""
    stacks: str = ""
    """The signal at which its tasks write their stacks; empty: none may be sent."""
    checkpoint: str = ""
    """The folder of its checkpoints, whose newest file shows progress."""
    quiet: bool | None = None
    """Whether Steward's lines on stderr are left out (the shim's concern)."""

    @staticmethod
    def parse(text: str) -> "ResumeMode":
        """Parse the option. Raises ValueError with one line that names the wrong word and the reason."""
        if len(text) > MAX_TEXT:
            raise ValueError(f"--auto-resume= is longer than {MAX_TEXT} characters")
        mode, *options = text.split(",")
        match = _MODE.match(mode)
        times = int(match["any"] or 0) if match else 0
        if match is None or times > 1000:
            raise ValueError(f"--auto-resume={text!r}: {USAGE}")
        found = ResumeMode(text=text, on=match["evidence"] != "0", without_evidence=times)
        return replace(found, **_options(options))


Mode = Annotated[ResumeMode, MaxLen(MAX_TEXT), Parsed(ResumeMode.parse)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteDefault:
    """A default of the site: batch jobs without the option that match all non-empty fields are opted in."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    mode: ResumeMode


RANGES: Mapping[str, str] = {
    "max": "max=N with N from 0 to 1000",
    "stalls": "stalls=N with N from 1 to 1000",
    "age": "age=SECONDS from 0 to 86400",
    "backoff": "backoff=0 or backoff=1",
    "codes": "codes=C:C with at most 32 exit codes from 1 to 255",
    "timeout": "timeout=0 or timeout=1",
    "requeue": "requeue=0 or requeue=1",
    "hang": "hang=0, hang=1 or hang=SECONDS from 10 to 86400",
    "stacks": "stacks=USR1, USR2, HUP, QUIT or URG",
    "checkpoint": "checkpoint=/PATH of letters, digits and ._/+@%:=-",
    "quiet": "quiet=0 or quiet=1",
}
"""The values that each option takes."""


def _options(words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        read = _READ.get(key)
        if read is None:
            raise ValueError(f"--auto-resume: {word!r} is not known: {USAGE}")
        found = read(value)
        if found is None:
            raise ValueError(f"--auto-resume: {word!r} is not valid: use {RANGES[key]}")
        if values.keys() & found.keys():
            raise ValueError(f"--auto-resume: {key!r} is given twice")
        values |= found
    return values


def _whole(value: str, low: int, high: int) -> int | None:
    if not re.fullmatch(r"[0-9]{1,6}", value) or not low <= int(value) <= high:
        return None
    return int(value)


def _number(name: str, low: int, high: int, kind: Callable[[int], Any]) -> Callable[[str], dict[str, Any] | None]:
    def read(value: str) -> dict[str, Any] | None:
        number = _whole(value, low, high)
        return None if number is None else {name: kind(number)}

    return read


def _codes(value: str) -> dict[str, Any] | None:
    codes = [_whole(code, 1, 255) for code in value.split(":")]
    return None if None in codes or len(codes) > 32 else {"codes": frozenset(codes)}


def _hang(value: str) -> dict[str, Any] | None:
    if value in ("0", "1"):
        return {"hang": value == "1"}
    seconds = _whole(value, 10, 86400)
    return None if seconds is None else {"hang": True, "hang_s": float(seconds)}


def _stacks(value: str) -> dict[str, Any] | None:
    return {"stacks": value} if value in STACK_SIGNALS else None


def _checkpoint(value: str) -> dict[str, Any] | None:
    return {"checkpoint": value} if _PATH.match(value) else None


_READ: Mapping[str, Callable[[str], dict[str, Any] | None]] = {
    "max": _number("max_resumes", 0, 1000, int),
    "stalls": _number("stalls", 1, 1000, int),
    "age": _number("age_s", 0, 86400, float),
    "backoff": _number("backoff", 0, 1, bool),
    "codes": _codes,
    "timeout": _number("timeout", 0, 1, bool),
    "requeue": _number("requeue", 0, 1, bool),
    "hang": _hang,
    "stacks": _stacks,
    "checkpoint": _checkpoint,
    "quiet": _number("quiet", 0, 1, bool),
}
