"""The lines that the shim and the agent exchange (docs/architecture.md): pure text in, values out."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote_to_bytes

from steward.adapters.codec import FrameCodec
from steward.adapters.wire.deep_messages import DeepLine, parse_deep_line
from steward.adapters.wire.frames import Malformed
from steward.adapters.wire.verdict_line import VerdictLine
from steward.model.ask import Answer, AskKind
from steward.model.bounds import Count, Folded, Given, Job, Sparse, StepName, StepNumber, Task, Uid, WaitStatus
from steward.model.elastic_spec import ElasticText
from steward.model.ids import NodeName
from steward.model.resume_mode import Mode
from steward.model.text import printable

MAX_LINE = 1024
WAIT = b"steward/1 wait\n"
OK = b"steward/1 ok\n"

_VERSION = "steward/1"
_FIELD = re.compile(r"^(?P<key>[a-z_]+)=(?P<value>\S+)$")
_ESCAPED = re.compile(r"[ %]")
_FILES = re.compile(r"[0-9]{1,20}:[0-9]{1,18}:[0-9]{1,18}(,[0-9]{1,20}:[0-9]{1,18}:[0-9]{1,18})?")


class BadLine(Exception):
    """A line that is not of this protocol; the connection is closed without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptedLine:
    """A line of slurmstepd: the script or a step of an opted-in job starts."""

    job: Job
    uid: Uid
    mode: Mode
    restart: Count
    step: Annotated[StepNumber | None, Sparse()] = None
    """The step; None means the script."""
    attempt: Annotated[Count, Sparse()] = 1
    elastic: Annotated[ElasticText, Sparse()] = ""
    """The value of `--elastic=` in the script of a run's base."""
    detached: Annotated[bool, Given()] = False
    """Whether the step's srun did not wait for it (`--async`); the step's number is then unknown."""

    @property
    def is_script(self) -> bool:
        """Return whether the script starts, and not a step."""
        return self.step is None and not self.detached

    @property
    def has_past(self) -> bool:
        """Whether the job ran before, so that its shim waits longer for an answer."""
        return self.restart > 0 or self.attempt > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitLine:
    """A line of slurmstepd: a task of an opted-in job ended badly. `status` is a raw wait status."""

    job: Job
    step: StepName
    restart: Count
    task: Task
    status: WaitStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line about the output file of an opted-in job's script, as its user claims; `size` is from before the job."""

    job: Job
    restart: Count
    size: int
    out: Annotated[str, Given()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The part of a file, named by its inode, that was written while a step ran: bytes `begin` to `end`."""

    inode: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedLine:
    """A line of a step's srun: the step ended well. `written` are the files that it may have written to."""

    job: Job
    step: StepName
    restart: Count
    written: Annotated[tuple[Written, ...], Given()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLine:
    """A line of a waiting shim: the script or a step of an opted-in job failed. `status` is a raw wait status."""

    kind: AskKind
    job: Job
    step: StepName
    uid: Uid
    mode: Mode
    attempt: Count
    restart: Count
    status: WaitStatus
    nodes: Annotated[Folded, Sparse()] = ""
    age: Annotated[Count | None, Sparse()] = None
    """The seconds that the step had run; None: not known."""
    replay: Annotated[bool, Given()] = True
    """Whether the step can run again; False if its input is gone."""
    own: Annotated[bool, Given()] = False
    """Whether the step's own srun has the option, and not only its job."""
    script_gone: Annotated[bool, Given()] = False
    """Whether Slurm lost the batch script before it began."""
    script_unbegun: Annotated[bool, Given()] = False
    """Whether a failure on the node came before the batch script could begin."""
    written: Annotated[tuple[Written, ...], Given()] = ()
    """The files that the step may have written to; empty: not known."""


_OPTED, _ASK, _EXIT, _LOG = FrameCodec(OptedLine), FrameCodec(AskLine), FrameCodec(ExitLine), FrameCodec(LogLine)
_ENDED = FrameCodec(EndedLine)
Request = OptedLine | AskLine | ExitLine | EndedLine | LogLine | DeepLine | VerdictLine
"""Every line that the agent's socket accepts."""


def parse_request(line: bytes) -> Request:
    """Return the request in `line`, which ends with LF. Raises BadLine."""
    if len(line) > MAX_LINE or not line.endswith(b"\n"):
        raise BadLine(f"a line is longer than {MAX_LINE} bytes, or has no end")
    body = line[:-1]
    if any(byte < 0x20 or byte > 0x7E for byte in body):
        raise BadLine("a line has a byte that is not printable ASCII")
    version, verb, fields = _split(body.decode("ascii"))
    if version != _VERSION:
        raise BadLine(f"version {version[:20]!r}, this agent knows {_VERSION}")
    read = _VERBS.get(verb)
    if read is None:
        raise BadLine(f"unknown verb {verb[:20]!r}")
    try:
        return read(fields)
    except Malformed as error:
        raise BadLine(str(error)) from None


def answer_line(answer: Answer, exclude: frozenset[NodeName]) -> bytes:
    """Return the line for the waiting shim; an exclude list too long for the line is left out."""
    names = ",".join(sorted(exclude))
    line = f"{_VERSION} {answer.value}"
    if answer is Answer.RETRY and names and len(line) + len(names) + 10 <= MAX_LINE:
        line += f" exclude={names}"
    return f"{line}\n".encode("ascii", "replace")


def ok_line(words: Mapping[str, str]) -> bytes:
    """Return the answer to `opted`: as many of `words`, in order, as fit; non-ASCII text becomes `?`."""
    line = f"{_VERSION} ok"
    for key, value in words.items():
        word = f" {key}={_encoded(value)}"
        if len(line) + len(word) < MAX_LINE:
            line += word
    return f"{line}\n".encode("ascii")


def _encoded(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", printable(text, MAX_LINE))


def _log(fields: dict[str, str]) -> LogLine:
    out = unquote_to_bytes(_needed(fields, "out")).decode("utf-8", "surrogateescape")
    if not out.startswith("/") or any(c in out for c in "\0\n"):
        raise BadLine(f"out={out[:40]!r} is not the path of a file")
    return _LOG.read_words(fields, out=out)


def _opted(fields: dict[str, str]) -> OptedLine:
    return _OPTED.read_words(fields, detached=fields.get("detached") == "yes")


def _ask(fields: dict[str, str]) -> AskLine:
    return _ASK.read_words(
        fields,
        replay=fields.get("replay") != "no",
        own=fields.get("own") == "yes",
        script_gone=fields.get("script") == "gone",
        script_unbegun=fields.get("script") == "unbegun",
        written=_written(fields.get("log", "")),
    )


def _ended(fields: dict[str, str]) -> EndedLine:
    return _ENDED.read_words(fields, written=_written(_needed(fields, "log")))


def _written(text: str) -> tuple[Written, ...]:
    if not text:
        return ()
    if not _FILES.fullmatch(text):
        raise BadLine(f"log={text[:40]!r} is no list of INODE:BEGIN:END")
    parts = (map(int, part.split(":")) for part in text.split(","))
    return tuple(Written(inode=inode, begin=begin, end=end) for inode, begin, end in parts)


def _split(text: str) -> tuple[str, str, dict[str, str]]:
    words = text.split(" ")
    if len(words) < 2:
        raise BadLine("a line has no verb")
    fields: dict[str, str] = {}
    for word in words[2:]:
        match = _FIELD.match(word)
        if match is None:
            raise BadLine(f"{word[:40]!r} is not key=value")
        if match["key"] in fields:
            raise BadLine(f"{match['key']} is given twice")
        fields[match["key"]] = match["value"]
    return words[0], words[1], fields


def _needed(fields: dict[str, str], key: str) -> str:
    if key not in fields:
        raise BadLine(f"{key}= is missing")
    return fields[key]


_VERBS: Mapping[str, Callable[[dict[str, str]], Request]] = {
    "opted": _opted,
    "ask": _ask,
    "exit": _EXIT.read_words,
    "ended": _ended,
    "log": _log,
    "deep": parse_deep_line,
    "verdict": lambda fields: VerdictLine(),
}
