"""A check: the probes to look with, and a pure judge of their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from steward.checks.limits import Limits, Names, Setting, Threshold
from steward.model.dotted import lookup_dotted
from steward.model.health import Advice, Finding, Outcome, Scope, Severity
from steward.model.ids import NodeName
from steward.model.probe import Probe, Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a node that its probes and judges need. `slurm_conf` is the path of its slurm.conf."""

    node: NodeName
    limits: Limits
    slurm_conf: str = ""

    def limit(self, threshold: Threshold) -> float:
        """Return the site's value of the threshold, or else its default."""
        return self.limits.number(threshold)

    def names(self, setting: Names) -> tuple[str, ...]:
        """Return the site's value of the list, or else its default."""
        return self.limits.names(setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of one look. `text` may hold untrusted text; `scope` and `hardware` mean the same as in Finding."""

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
        """Return the finding for the head; `subject` is its hardware where the judgement names none."""
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


# What a judge knows from earlier looks: whether the check counts as failed, and its counters over time.

Notes = Mapping[str, tuple[float, ...]]
"""The notes that a check keeps for its next look: by name, times (Unix s) or other numbers."""

NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The counters that one look found, at Unix seconds `at`."""

    at: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The earlier looks of one check, for the judge of the present look.

    `readings` are oldest first, the last one of the present look, whose time is `now` (Unix s). `notes` include the
    present look's; they survive a restart of the agent, but not a reboot.
    """

    was_bad: bool = False
    now: float = 0.0
    readings: tuple[Reading, ...] = ()
    notes: Notes = field(default_factory=lambda: NO_NOTES)

    def growth(self, name: str, within_s: float) -> float:
        """Return how much a counter grew within the last `within_s` seconds."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        pairs = pairwise(values)
        # A counter that fell was reset, and has grown from zero since.
        return sum(new - old if new >= old else new for old, new in pairs)

    def per_second(self, name: str, within_s: float) -> float:
        """Return the mean rate of `name` over the time that the window's readings span; 0 with fewer than two."""
        times = [r.at for r in self._within(within_s) if name in r.values]
        span = times[-1] - times[0] if times else 0.0
        return self.growth(name, within_s) / span if span > 0 else 0.0

    def share(self, name: str, within_s: float) -> tuple[int, int]:
        """Return in how many of the window's looks the value was not zero, and how many looks have the value."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        return sum(value != 0 for value in values), len(values)

    def _within(self, seconds: float) -> list[Reading]:
        """Return the window's readings and the last one before the window."""
        # Growth since the start of the window is measured from the last reading before the window.
        first = next((n for n, r in enumerate(self.readings) if r.at >= self.now - seconds), len(self.readings))
        return list(self.readings[max(first - 1, 0) :])


Judge = Callable[[tuple[Raw, ...], Facts, Past], Judgement]
"""(the result of each probe, facts, the earlier looks) -> verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A health check of the node's state.

    `default_mode` (`off`: the check does not run) applies unless the site sets a mode for the check or its family.
    `settings` are the other settings of the check. A first bad look is repeated after `confirm_s`; a failure must
    last `bad_for_s` before it counts, and the first good look ends it if it `clears_at_once`. `is_quick` checks take
    part in a check-now; the others cost too much or never change that fast. `title` names the fault that the check
    detects, `source` the place where it looks (`nvml`, `sysfs`, `procfs`, `kmsg`, `command`), and `cost_ms` is
    roughly the CPU time of one look. `readings` takes the counters out of a look; they are kept for `keep_s` and
    given to the judge. `note` returns what the check needs at its next look, also after a restart of the agent in the
    same boot; `past.notes` holds the notes of the look before. `every_s` None means `agent.check_interval_s`.
    """

    id: str
    probes: Callable[[Facts], tuple[Probe, ...]]
    judge: Judge
    default_mode: str = "drain"
    every_s: float | None = None
    confirm_s: float = 1.0
    bad_for_s: float = 0.0
    clears_at_once: bool = False
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
        """Return the mode of the check under these settings: `off`, `report` or `drain`."""
        return lookup_dotted(self.id, limits.modes) or self.default_mode

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        return tuple(one for one in self.settings if isinstance(one, Threshold))

    def verdict(self, raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        """Return the judge's verdict, or UNKNOWN if a probe failed."""
        error = next((raw.error for raw in raws if raw.error), "")
        return unknown(error) if error else self.judge(raws, facts, past)


def on_every_node(*probes: Probe) -> Callable[[Facts], tuple[Probe, ...]]:
    """Return the `probes` function of a check that uses the same probes on every node."""
    return lambda facts: probes


def passed(text: str) -> Judgement:
    return Judgement(outcome=Outcome.PASSED, text=text)


def unknown(text: str) -> Judgement:
    """Return the verdict of a look that failed or shows nothing: never a reason to act."""
    return Judgement(outcome=Outcome.UNKNOWN, text=text)


def skipped(text: str) -> Judgement:
    """Return the verdict of a check that does not apply to this node; `text` says why."""
    return Judgement(outcome=Outcome.SKIPPED, text=text)


def failed(
    text: str, severity: Severity, advice: Advice, *, scope: Scope = Scope.NODE, hardware: str = ""
) -> Judgement:
    return Judgement(
        outcome=Outcome.FAILED, severity=severity, advice=advice, text=text, scope=scope, hardware=hardware
    )


# Events that weigh more when they repeat.

GAP_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The severity and advice for `times` or more events of one kind about one subject within `within_s` seconds.

    Lines closer than `gap_s` to the last one that counted are the same event.
    """

    times: int
    within_s: float
    severity: Severity
    advice: Advice
    gap_s: float = GAP_S
