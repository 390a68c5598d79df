"""A job's own rules for its output: the file that names them, and what the output says by them.

Pure: `log_watch.py` reads. The file is HyperPod's for Slurm (`"enabled": true`), with the rules of its training
operator (`logMonitoringConfiguration`); patterns are searched for anywhere in a line.
"""

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steward.adapters.node.as_user import Matches
from steward.model.job_sight import MOST_RULES, LogState, LogWord
from steward.model.text import count_noun, printable

_LIST = "logMonitoringConfiguration"
_MOST_PATTERN = 400
_MOST_POINTS = 100
_MOST_S = 30 * 86400.0
_OPERATORS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "gt": (operator.gt, "above"),
    "lt": (operator.lt, "below"),
    "eq": (operator.eq, "equal to"),
    "gteq": (operator.ge, "at or above"),
    "lteq": (operator.le, "at or below"),
}
_FIELDS = frozenset(
    {
        "name",
        "logPattern",
        "expectedStartCutOffInSeconds",
        "expectedRecurringFrequencyInSeconds",
        "metricThreshold",
        "operator",
        "metricEvaluationDataPoints",
        "stopPattern",
        "faultOnMatch",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRule:
    """A rule. Times are seconds; None or empty: the rule does not say."""

    name: str
    pattern: str
    start_s: float | None = None
    """The first matching line is to come within this time."""
    again_s: float | None = None
    """Each further one is to come within this time."""
    bound: float | None = None
    operator: str = ""
    points: int = 1
    """So many numbers in a row are to be beyond the bound."""
    stop: str = ""
    """The rule ends with a line that matches this."""
    is_fault: bool = False
    """Whether a matching line is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """The rules of a job, if they `are_on`; `unknown` are the fields of the file that are not known here."""

    are_on: bool = True
    rules: tuple[LogRule, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def patterns(self) -> list[str]:
        """Return the patterns of all rules, each with that of its end after it."""
        return [text for rule in self.rules for text in (rule.pattern, rule.stop)]


def rules_in(text: str) -> LogRules:
    """Return the rules in a file. Raises ValueError with one line."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise ValueError("it is no JSON object")
    enabled = told.get("enabled")
    if not isinstance(enabled, bool):
        raise ValueError('it lacks "enabled": true')
    rules = told.get(_LIST, [])
    if not isinstance(rules, list) or len(rules) > MOST_RULES:
        raise ValueError(f"{_LIST} is no list of at most {MOST_RULES} rules")
    found = tuple(_rule(rule, f"rule {number}") for number, rule in enumerate(rules, 1))
    if len({rule.name for rule in found}) < len(found):
        raise ValueError("two rules have the same name")
    unknown = [*(told.keys() - {"enabled", _LIST}), *(key for rule in rules for key in rule.keys() - _FIELDS)]
    return LogRules(are_on=enabled, rules=found, unknown=tuple(sorted({printable(key, 32) for key in unknown})))


def _rule(told: Any, where: str) -> LogRule:
    if not isinstance(told, dict):
        raise ValueError(f"{where} is no JSON object")
    name = _text(told, "name", where, 64)
    where = f"rule '{printable(name, 64)}'"
    rule = LogRule(
        name=name,
        pattern=_text(told, "logPattern", where, _MOST_PATTERN),
        start_s=_number(told, "expectedStartCutOffInSeconds", where, 1.0, _MOST_S),
        again_s=_number(told, "expectedRecurringFrequencyInSeconds", where, 1.0, _MOST_S),
        bound=_number(told, "metricThreshold", where, -1e300, 1e300),
        operator=_text(told, "operator", where, 8, default=""),
        points=int(_number(told, "metricEvaluationDataPoints", where, 1.0, _MOST_POINTS) or 1),
        stop=_text(told, "stopPattern", where, _MOST_PATTERN, default=""),
        is_fault=_flag(told, "faultOnMatch", where),
    )
    if rule.operator not in ("", *_OPERATORS):
        raise ValueError(f"{where}: operator is none of {', '.join(_OPERATORS)}")
    if (rule.bound is None) != (rule.operator == ""):
        raise ValueError(f"{where}: metricThreshold and operator go together")
    if rule.start_s is None and rule.again_s is None and rule.bound is None and not rule.is_fault:
        raise ValueError(f"{where} asks for nothing: it has neither a time, nor a bound, nor faultOnMatch")
    return rule


def _text(told: Mapping[str, Any], key: str, where: str, most: int, default: str | None = None) -> str:
    value = told.get(key, default)
    if not isinstance(value, str) or len(value) > most or (default is None and not value):
        raise ValueError(f"{where}: {key} is no text of 1 to {most} characters")
    return value


def _number(told: Mapping[str, Any], key: str, where: str, low: float, high: float) -> float | None:
    value = told.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{where}: {key} is no number from {low:g} to {high:g}")
    return float(value)


def _flag(told: Mapping[str, Any], key: str, where: str) -> bool:
    value = told.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{where}: {key} is neither true nor false")
    return value


@dataclass(slots=True, kw_only=True)
class _Kept:
    """How one rule is kept in one file. Times are s since the machine's boot."""

    last: float | None = None
    """When the last matching line was seen; None: none was."""
    numbers: list[float] = field(default_factory=list)
    is_over: bool = False
    had_fault: bool = False


class LogSense:
    """What one file says by the rules. `began` is when its step did (s); None: it was seen too late to judge that."""

    def __init__(self, rules: Sequence[LogRule], *, began: float | None, at: float, rank: int | None) -> None:
        self._rules, self._began, self._rank = rules, began, rank
        # of lines before the first look nothing is known: the next one is to come within its time from now
        self._kept = [_Kept(last=at if began is None else None) for _ in rules]

    def note(self, found: Matches, at: float) -> None:
        """Take what the lines matched that were new at `at`."""
        for index, (rule, kept) in enumerate(zip(self._rules, self._kept, strict=True)):
            count, stops = found.counts[2 * index : 2 * index + 2]
            if kept.is_over:
                continue
            kept.last = at if count else kept.last
            kept.numbers = [*kept.numbers, *found.numbers[2 * index]][-rule.points :]
            kept.had_fault = kept.had_fault or (rule.is_fault and count > 0)
            kept.is_over = bool(rule.stop) and stops > 0

    def words(self, at: float) -> list[LogWord]:
        """Return what is to be said at `at`, the time of the last look that read the file."""
        return [
            word
            for rule, kept in zip(self._rules, self._kept, strict=True)
            if (word := self._word(rule, kept, at)) is not None
        ]

    def _word(self, rule: LogRule, kept: _Kept, at: float) -> LogWord | None:
        if kept.had_fault:
            return LogWord(state=LogState.FAULT, rule=rule.name, rank=self._rank)
        if kept.is_over:
            return None
        since, limit_s = (kept.last, rule.again_s) if kept.last is not None else (self._began, rule.start_s)
        if since is not None and limit_s is not None and at - since > limit_s:
            return LogWord(state=LogState.LATE, rule=rule.name, rank=self._rank, for_s=at - since, limit_s=limit_s)
        if rule.bound is not None and len(kept.numbers) == rule.points:
            is_beyond, word = _OPERATORS[rule.operator]
            if all(is_beyond(number, rule.bound) for number in kept.numbers):
                last = f"{kept.numbers[-1]:g} is {word} {rule.bound:g}"
                text = last if rule.points == 1 else f"{last}, as are {rule.points} in a row"
                return LogWord(state=LogState.SLOW, rule=rule.name, rank=self._rank, text=text)
        return None


_WORST = (LogState.FAULT, LogState.LATE, LogState.SLOW)


def worst(words: Iterable[LogWord]) -> list[LogWord]:
    """Return the worst word of each rule over all files, of equal ones that of the first rank."""
    found: dict[str, LogWord] = {}
    for word in sorted(words, key=lambda one: (_WORST.index(one.state), -1 if one.rank is None else one.rank)):
        found.setdefault(word.rule, word)
    return sorted(found.values(), key=lambda one: one.rule)


def watched(rules: LogRules) -> LogWord:
    """Return the word that the rules are in force, with the fields of the file that are not known here."""
    text = count_noun(len(rules.rules), "rule")
    if rules.unknown:
        text += f"; not known here: {', '.join(rules.unknown[:4])}"
    return LogWord(state=LogState.WATCHED, text=printable(text, 160))


def broken(why: str, rule: str = "") -> LogWord:
    """Return the word that the rules, or this one, cannot be used."""
    return LogWord(state=LogState.BROKEN, rule=rule, text=printable(why, 160))
