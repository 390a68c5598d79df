"""A check: the probes to look with, and a pure judge of their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from steward.checks.limits import Limits, Names, Setting, Threshold
from steward.model.dotted import said_of
from steward.model.health import Advice, Finding, Outcome, Scope, Severity
from steward.model.ids import NodeName
from steward.model.probe import Probe, Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about a node for its probes and judges. `slurm_conf` is the path of its slurm.conf."""

    node: NodeName
    limits: Limits
    slurm_conf: str = ""

    def limit(self, threshold: Threshold) -> float:
        """The site's number, or the threshold's own."""
        return self.limits.number(threshold)

    def names(self, setting: Names) -> tuple[str, ...]:
        """The site's list, or the check's own."""
        return self.limits.names(setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one look. `text` may hold foreign text. `scope` and `hardware` as in Finding."""

    outcome: Outcome
    severity: Severity = Severity.INFO
    advice: Advice = Advice.NONE
    text: str = ""
    scope: Scope = Scope.NODE
    hardware: str = ""

    @property
    def is_bad(self) -> bool:
        return self.outcome is Outcome.FAILED

    def finding(self, check: str, at: float, *, event: bool = False, subject: str = "") -> Finding:
        """As the head is told of it. `subject`: what it is about, where it names no hardware itself."""
        return Finding(
            check=check,
            outcome=self.outcome,
            severity=self.severity,
            advice=self.advice,
            text=self.text,
            at=at,
            event=event,
            scope=self.scope,
            hardware=self.hardware or subject,
        )


# What a judge knows of earlier looks: whether the check stands as failed, and its counters over time.

Notes = Mapping[str, tuple[float, ...]]
"""The notes that a check made for itself: by name, times (Unix s) or other numbers."""

NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters as one look found them, at Unix seconds `at`."""

    at: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """`readings` are oldest first and end with the present look's; `now` is its time (Unix s). `notes` are what the
    check noted, the present look included; they outlive the agent, not the boot."""

    was_bad: bool = False
    now: float = 0.0
    readings: tuple[Reading, ...] = ()
    notes: Notes = field(default_factory=lambda: NO_NOTES)

    def growth(self, name: str, within_s: float) -> float:
        """How much a counter grew within the last `within_s` seconds. One that fell was reset: it grew from zero."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        pairs = pairwise(values)
        return sum(new - old if new >= old else new for old, new in pairs)

    def per_second(self, name: str, within_s: float) -> float:
        """The mean rate of `name` over the time that the readings of that window span; 0 with fewer than two."""
        times = [r.at for r in self._within(within_s) if name in r.values]
        span = times[-1] - times[0] if times else 0.0
        return self.growth(name, within_s) / span if span > 0 else 0.0

    def share(self, name: str, within_s: float) -> tuple[int, int]:
        """(looks in which it was not zero, looks that have it)."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        return sum(value != 0 for value in values), len(values)

    def _within(self, seconds: float) -> list[Reading]:
        """The window's readings, and the last one before it: growth since the window's begin needs it."""
        first = next((n for n, r in enumerate(self.readings) if r.at >= self.now - seconds), len(self.readings))
        return list(self.readings[max(first - 1, 0) :])


Judge = Callable[[tuple[Raw, ...], Facts, Past], Verdict]
"""(what each probe brought back, facts, what earlier looks found) -> verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One state check. `default_mode` (`off`: it is not run) holds until the site says another word for the check or
    its family. `settings` are all else that a site may say of it.

    `every_s` None means `agent.check_interval_s`. A first bad look is repeated after `confirm_s`; a failure must last
    `bad_for_s` before it stands. `is_quick` checks take part in a check-now; the others cost too much or never change
    that fast. `title` says what it detects, `source` where it looks (`nvml`, `sysfs`, `procfs`, `kmsg`, `command`), and
    `cost_ms` about what CPU time one look takes. `readings` takes the counters out of a look; they are kept for
    `keep_s` and given to the judge. `note` says what the check wants to know at its next look, also after a restart of
    the agent in the same boot; it sees what it noted last in `past.notes`.
    """

    id: str
    probes: Callable[[Facts], tuple[Probe, ...]]
    judge: Judge
    default_mode: str = "drain"
    every_s: float | None = None
    confirm_s: float = 1.0
    bad_for_s: float = 0.0
    timeout_s: float = 10.0
    is_quick: bool = True
    title: str = ""
    source: str = ""
    cost_ms: float = 1.0
    settings: tuple[Setting, ...] = ()
    readings: Callable[[tuple[Raw, ...]], Mapping[str, float]] | None = None
    keep_s: float = 3600.0
    note: Callable[[tuple[Raw, ...], Facts, Past], Notes] | None = None

    def mode(self, limits: Limits) -> str:
        """`off`, `report` or `drain`, as these settings say."""
        return said_of(self.id, limits.modes) or self.default_mode

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        return tuple(one for one in self.settings if isinstance(one, Threshold))

    def verdict(self, raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        """The judge's word; UNKNOWN when a look failed."""
        error = next((raw.error for raw in raws if raw.error), "")
        return unknown(error) if error else self.judge(raws, facts, past)


def always(*probes: Probe) -> Callable[[Facts], tuple[Probe, ...]]:
    """The probes of a check that looks at the same things on every node."""
    return lambda facts: probes


def passed(text: str) -> Verdict:
    return Verdict(outcome=Outcome.PASSED, text=text)


def unknown(text: str) -> Verdict:
    """The look failed or says nothing: never a reason to act."""
    return Verdict(outcome=Outcome.UNKNOWN, text=text)


def skipped(text: str) -> Verdict:
    """There is nothing to look at on this node; `text` says why."""
    return Verdict(outcome=Outcome.SKIPPED, text=text)


def failed(text: str, severity: Severity, advice: Advice, *, scope: Scope = Scope.NODE, hardware: str = "") -> Verdict:
    return Verdict(outcome=Outcome.FAILED, severity=severity, advice=advice, text=text, scope=scope, hardware=hardware)


# Events that say more when they come again.

GAP_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The `times`-th event of this kind about the same thing within `within_s` seconds says more than the first.

    Lines closer than `gap_s` to the last one that counted are the same event.
    """

    times: int
    within_s: float
    severity: Severity
    advice: Advice
    gap_s: float = GAP_S
