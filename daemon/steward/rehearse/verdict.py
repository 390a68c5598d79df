"""The judgement of a rehearsal: what was seen of the runs -> findings, each with what shows it and what to change."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import fmean

from steward.job.checkpoints import step_of
from steward.rehearse.advice import CHANGE
from steward.rehearse.rehearsal import RunEnding, RunSeen
from steward.rehearse.signs import StepLine, StepPlace

_FEW = 3
_LOSS_BACK = 0.5
_LOSS_FELL = 0.2
_LOSS_DIFFERS = 0.05
_RATE_DIFFERS = 0.01
_SKIPPED = 3
_HANG_TIMES = 2.0
_TAIL = 6
_LONGEST = 160
_BROKEN = re.compile(
    r"EOFError|unpickling|pickle data|invalid load key|central directory|PytorchStreamReader|HeaderTooLarge|"
    r"InvalidHeader|MetadataIncomplete|BadZipFile|not a zip|Expecting value|JSONDecodeError|corrupt|truncated|"
    r"Unterminated string",
    re.IGNORECASE,
)
_KNOWN_ERRORS = (
    ("port_taken", re.compile(r"address already in use|EADDRINUSE|errno: ?98", re.IGNORECASE)),
    ("old_address", re.compile(r"name or service not known|no route to host|could not resolve", re.IGNORECASE)),
    ("already_there", re.compile(r"FileExistsError|File exists|already exists", re.IGNORECASE)),
)


class Weight(StrEnum):
    """What a finding means for the long run."""

    BAD = "bad"
    ADVICE = "advice"
    UNKNOWN = "unknown"
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class ResumeFinding:
    """One thing that was found. `shown_by`: the lines of output, or the files, that show it."""

    name: str
    weight: Weight
    text: str
    shown_by: tuple[str, ...] = ()
    change: str = ""


def judge(runs: Sequence[RunSeen], script: str, kill_wait_s: float) -> list[ResumeFinding]:
    """Return what was found, the worst first. `script` is the script's text."""
    found = [*_of_script(script), *_of_first(runs[0])]
    for number in range(1, len(runs)):
        found += _of_next(runs[:number], runs[number])
    found += [each for run in runs for each in _of_term(run, kill_wait_s)]
    order, once = list(Weight), {each.name: each for each in reversed(found) if each.weight is not Weight.GOOD}
    found = [each for each in found if once.get(each.name, each) is each]
    return sorted(found, key=lambda each: order.index(each.weight))


def can_be_resumed(found: Sequence[ResumeFinding]) -> bool | None:
    """Return the verdict; None if it cannot be told."""
    if any(each.weight is Weight.BAD for each in found):
        return False
    return True if any(each.name == "resumes" for each in found) else None


def _finding(name: str, weight: Weight, text: str, shown_by: Sequence[str] = ()) -> ResumeFinding:
    return ResumeFinding(name, weight, text, tuple(shown_by), CHANGE.get(name, ""))


def _of_script(script: str) -> Iterator[ResumeFinding]:
    lines = [line.strip() for line in script.splitlines() if line.startswith("#SBATCH")]
    if refuses := [line for line in lines if "--no-requeue" in line]:
        text = "The script forbids that it is put back into the queue: it ends when its machine does."
        yield _finding("no_requeue", Weight.BAD, text, refuses)
    if script and not any("--open-mode" in line for line in lines):
        text = "Slurm empties the output file at each new start, unless it is told to append."
        yield _finding("open_mode", Weight.ADVICE, text)


def _of_first(run: RunSeen) -> Iterator[ResumeFinding]:
    """Yield why there is nothing to compare, if so."""
    if run.ending is RunEnding.NEVER_BEGAN:
        yield _finding("never_ran", Weight.UNKNOWN, f"The job never began: {run.why}.")
    elif run.ended is not None and run.ended.state == "COMPLETED":
        text = "It was complete before a fault could be made: there was nothing to rehearse."
        yield _finding("too_short", Weight.UNKNOWN, text)
    elif run.ended is not None:
        text = f"It failed by itself ({_how(run)}), before any fault was made."
        yield _finding("fails", Weight.BAD, text, _tail(run))
    elif not run.saves:
        text = "It saved nothing while it was watched: after a fault it would begin again from the start."
        yield _finding("no_save", Weight.BAD, text, _tail(run, 1))


def _of_next(before: Sequence[RunSeen], run: RunSeen) -> Iterator[ResumeFinding]:
    """Yield what a run after a fault shows, compared with the runs before it."""
    what = f"After fault {len(before)}"
    if run.ending is RunEnding.NEVER_BEGAN:
        text = f"{what} it was not started again in this time ({run.why})."
        yield _finding("not_started", Weight.UNKNOWN, text)
    elif run.ended is not None and run.ended.state != "COMPLETED":
        yield _failed_again(before[-1], run, what)
    elif run.first_sign is None and before[0].first_sign is not None and not run.is_over:
        start_s = before[0].first_sign - before[0].began
        waited = f"no step came for {run.watched_s:.0f} s (the first start took {start_s:.0f} s)"
        text = f"{what} it was started again, and {waited}."
        is_long = run.watched_s > _HANG_TIMES * start_s
        weight, name = (Weight.BAD, "hangs") if is_long else (Weight.UNKNOWN, "not_yet")
        yield _finding(name, weight, text, _tail(run, 3) or ("it printed nothing",))
    else:
        yield from _where_it_begins(before, run, what)
        if len(before) == 1 and run.first_sign is not None and not run.saves and not run.is_over:
            text = f"{what} it saved nothing more in the time in which its first run did."
            yield _finding("saves_once", Weight.UNKNOWN, text, (f"its first run saved {before[0].saves[-1].path}",))


def _failed_again(last: RunSeen, run: RunSeen, what: str) -> ResumeFinding:
    text, lines = f"{what} it failed when it was started again ({_how(run)}).", run.signs.tail
    broken = _lines_with(_BROKEN, lines)
    if last.torn or broken:
        half = [f"{path} is not whole" for path in last.torn]
        text = f"{text} It was killed while it saved, and then loaded half a checkpoint."
        return _finding("broken_save", Weight.BAD, text, [*half, *(broken or _tail(run))])
    for name, pattern in _KNOWN_ERRORS:
        if shown := _lines_with(pattern, lines):
            return _finding(name, Weight.BAD, text, shown)
    return _finding("fails_again", Weight.BAD, text, _tail(run))


def _where_it_begins(before: Sequence[RunSeen], run: RunSeen, what: str) -> Iterator[ResumeFinding]:
    begins, began = _begin(run), _begin(before[0])
    if begins is None or began is None:
        text = f"{what} it ran again, but no output or save names a step: it cannot be told where it began."
        yield _finding("no_steps", Weight.UNKNOWN, text, _tail(run, 2))
        return
    reached = max(place for each in before if (place := each.signs.last or _begin(each)) is not None)
    saves = sorted({place for each in before for place in _saved_places(each) if place > began})
    shown = (f"the run before began: {_line(before[-1])}", f"this run begins: {_line(run)}")
    if begins <= began and (saves or not run.signs.steps):
        saved = next(each.saves[-1].path for each in reversed(before) if each.saves)
        text = f"{what} it began from the start ({begins}), though it had come to {reached} and saved {saved}."
        yield _finding("from_start", Weight.BAD, text, shown)
    elif len(saves) > 1 and begins < saves[-2]:
        text = f"{what} it began at {begins}, though it had saved after {saves[-2]}: it loads an older checkpoint."
        yield _finding("older_save", Weight.BAD, text, shown)
    elif begins.epoch == reached.epoch and begins.step > reached.step + _unseen(before):
        text = f"{what} it began at {begins}, but had only come to {reached}: steps are left out."
        yield _finding("skips", Weight.BAD, text, shown)
    else:
        saved_at = f", and had saved after {saves[-1]}" if saves else ""
        past = f"had come to {reached}{saved_at}" if before[-1].signs.steps else f"had begun at {began} at first"
        text = f"{what} it began at {begins}; it {past}."
        yield _finding("resumes", Weight.GOOD, text, shown[1:])
        yield from _numbers(before, run, what)


def _unseen(before: Sequence[RunSeen]) -> float:
    """Return how many steps may be done between two that are printed; no bound where lines of steps are missing."""
    gaps = [
        later.place.step - earlier.place.step
        for run in before
        for earlier, later in zip(run.signs.steps, run.signs.steps[1:], strict=False)
    ]
    return max(_SKIPPED, 2 * max(gaps)) if gaps else inf


def _saved_places(run: RunSeen) -> Iterator[StepPlace]:
    """Yield the step of each save of the run, or the last one that was printed before it."""
    for save, place in zip(run.saves, run.saved_at, strict=True):
        if place is not None:
            yield place
        elif run.signs.first is None and (step := step_of(save.path.name)) >= 0:
            yield StepPlace(0, step)


def _begin(run: RunSeen) -> StepPlace | None:
    return run.signs.first.place if run.signs.first is not None else next(_saved_places(run), None)


def _line(run: RunSeen) -> str:
    return _shown(run.signs.first) if run.signs.first is not None else f"its first save is {run.saves[0].path}"


def _numbers(before: Sequence[RunSeen], run: RunSeen, what: str) -> Iterator[ResumeFinding]:
    """Yield what is wrong with loss and learning rate."""
    last = before[-1]
    losses, start, end = _losses(run)[:_FEW], _losses(before[0])[:_FEW], _losses(last)[-_FEW:]
    if min(map(len, (losses, start, end))) == _FEW:
        top, bottom, now = fmean(start), fmean(end), fmean(losses)
        if top - bottom > _LOSS_FELL * abs(top) and now - bottom > _LOSS_BACK * (top - bottom):
            text = f"{what} the loss is back at {now:.4g}; it had come down from {top:.4g} to {bottom:.4g}."
            yield _finding("loss_back", Weight.BAD, text, (_line(run),))
            return
    pasts = {each.place: each for each in last.signs.steps}
    same = [(pasts[each.place], each) for each in run.signs.steps if each.place in pasts]
    for old, new in same:
        if old.rate is not None and new.rate is not None and _differ(old.rate, new.rate) > _RATE_DIFFERS:
            text = (
                f"{what} the learning rate of {new.place} was {new.rate:.4g}; before the fault it was {old.rate:.4g}."
            )
            yield _finding("rate_jumps", Weight.BAD, text, (_shown(old), _shown(new)))
            break
    apart = [_differ(old.loss, new.loss) for old, new in same if old.loss is not None and new.loss is not None]
    if len(apart) >= _FEW and fmean(apart) > _LOSS_DIFFERS:
        text = f"{what} the same steps had another loss than before: other samples, or other random numbers."
        yield _finding("other_numbers", Weight.ADVICE, text, (_shown(same[0][0]), _shown(same[0][1])))


def _losses(run: RunSeen) -> list[float]:
    return [each.loss for each in run.signs.steps if each.loss is not None]


def _differ(one: float, other: float) -> float:
    """Return the difference as a part of the larger number."""
    return abs(one - other) / max(abs(one), abs(other), 1e-9)


def _of_term(run: RunSeen, kill_wait_s: float) -> Iterator[ResumeFinding]:
    if run.ending is not RunEnding.TOLD or run.term_s is None:
        return
    if run.term_s > kill_wait_s - 2.0:
        text = f"It did not end when it was told to (SIGTERM): Slurm killed it {run.term_s:.0f} s later."
        yield _finding("ignores_term", Weight.ADVICE, text, _tail(run, 1))
    else:
        text = f"It ended {run.term_s:.0f} s after it was told to (SIGTERM)."
        yield _finding("ends", Weight.GOOD, text)


def _how(run: RunSeen) -> str:
    return f"{run.ended.state}, {run.ended.exit_code}" if run.ended else ""


def _shown(line: StepLine) -> str:
    return line.line.strip()[:_LONGEST]


def _tail(run: RunSeen, count: int = _TAIL) -> tuple[str, ...]:
    return tuple(line.strip()[:_LONGEST] for line in run.signs.tail[-count:])


def _lines_with(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last line that fits."""
    return tuple(line.strip()[:_LONGEST] for line in lines if pattern.search(line))[-1:]
