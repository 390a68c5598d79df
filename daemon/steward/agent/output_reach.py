"""The part of a job's output that can tell why a step or its script failed.

Of a step that is what was written since its attempt began. Of the script it is what was written since the last step
ended, or since the step began that the script ended because of: what other steps wrote says nothing, whether they ended
well, ran again, or failed and the script went on.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from steward.adapters.wire.shimline import AskLine, EndedLine, Written
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId
from steward.model.job_report import AT_ONCE_S, exit_code

MAX_FAILED = 16
MAX_FILES = 8


@dataclass(slots=True, kw_only=True)
class _Failed:
    """A step that failed and did not run again; `at` is when its srun was let go (Unix s)."""

    code: int
    at: float
    written: tuple[Written, ...]
    is_followed: bool = False
    """Whether another step began after it, so that the script went on."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """The steps of a job's run that have ended; `over` is how far, by inode, the others than `failed` wrote."""

    restart: int
    over: dict[int, int] = field(default_factory=dict)
    failed: deque[_Failed] = field(default_factory=deque)


class OutputReach:
    """The ends of the steps of each user's jobs on this node, as their sruns told them.

    Jobs that `is_known` does not know are forgotten.
    """

    def __init__(self, is_known: Callable[[JobId, int], bool]) -> None:
        self._is_known = is_known
        self._runs: dict[tuple[JobId, int], _Run] = {}

    def note_success(self, line: EndedLine, uid: int) -> None:
        """Note a step that ended well."""
        run = self._run(line.job, uid, line.restart)
        _follow(run.failed, line.written)
        _write_off(line.written, run.over)

    def note_failure(self, line: AskLine, answer: Answer, at: float) -> None:
        """Note a step that failed, when its srun has the answer."""
        if line.kind is not AskKind.STEP or not line.written:
            return
        run = self._run(line.job, line.uid, line.restart)
        _follow(run.failed, line.written)
        if answer is not Answer.STOP:
            _write_off(line.written, run.over)
            return
        if len(run.failed) == MAX_FAILED:
            _write_off(run.failed.popleft().written, run.over)
        run.failed.append(_Failed(code=exit_code(line.status), at=at, written=line.written))

    def starts(self, line: AskLine, now: float) -> Mapping[int, int]:
        """Return from which byte on each file, named by its inode, can tell of this failure."""
        if line.kind is AskKind.STEP:
            return {part.inode: part.begin for part in line.written}
        run = self._runs.get((line.job, line.uid))
        if run is None or run.restart != line.restart:
            return {}
        why = _that_explain(run.failed, exit_code(line.status), now)
        found = dict(run.over)
        for failed in run.failed:
            if failed not in why:
                _write_off(failed.written, found)
        began: dict[int, int] = {}
        for part in (part for failed in why for part in failed.written):
            began[part.inode] = min(part.begin, began.get(part.inode, part.begin))
        return found | began

    def _run(self, job: JobId, uid: int, restart: int) -> _Run:
        known = self._runs.get((job, uid))
        if known is None or known.restart != restart:
            self._runs = {key: run for key, run in self._runs.items() if self._is_known(*key)}
            known = self._runs[job, uid] = _Run(restart=restart)
        return known


def _write_off(written: Iterable[Written], over: dict[int, int]) -> None:
    """Let nothing count that was written until a step ended."""
    for part in written:
        if part.inode in over or len(over) < MAX_FILES:
            over[part.inode] = max(part.end, over.get(part.inode, 0))


def _follow(failed: Iterable[_Failed], written: Iterable[Written]) -> None:
    """Mark the steps that had ended when the step began that wrote this."""
    began = {part.inode: part.begin for part in written}
    for one in failed:
        if any(part.end <= began.get(part.inode, -1) for part in one.written):
            one.is_followed = True


def _that_explain(failed: Iterable[_Failed], code: int, now: float) -> list[_Failed]:
    """Return the failed steps because of which a script ended: just before it, or else the last one with its code."""
    known = list(failed)
    last = [one for one in known if one.at >= now - AT_ONCE_S and not one.is_followed]
    return last or [one for one in known if one.code == code][-1:]
