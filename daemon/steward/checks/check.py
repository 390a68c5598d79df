"""What a check is: which probes to look with, and a pure judge of what they brought back."""

from collections.abc import Callable
from dataclasses import dataclass

from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.probe import Probe, Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What probes and judges may know of their node. `slurm_conf` is the path of its slurm.conf."""

    node: NodeName
    limits: Limits
    slurm_conf: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one look says. `text` may hold foreign text."""

    outcome: Outcome
    severity: Severity = Severity.INFO
    advice: Advice = Advice.NONE
    text: str = ""

    @property
    def is_bad(self) -> bool:
        return self.outcome is Outcome.FAILED


Judge = Callable[[tuple[Raw, ...], Facts, bool], Verdict]
"""(what each probe brought back, facts, whether the check stands as failed now) -> verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One state check. `mode` is the settings' word for it ("off": it is not run).

    `every_s` None means `agent.check_interval_s`. A first bad look is repeated after `confirm_s`; a failure must last
    `bad_for_s` before it stands. `is_quick` checks take part in a check-now; the others cost too much or never change
    that fast.
    """

    id: str
    probes: Callable[[Facts], tuple[Probe, ...]]
    judge: Judge
    mode: Callable[[Limits], str]
    every_s: float | None = None
    confirm_s: float = 1.0
    bad_for_s: float = 0.0
    timeout_s: float = 10.0
    is_quick: bool = True

    def verdict(self, raws: tuple[Raw, ...], facts: Facts, *, was_bad: bool) -> Verdict:
        """The judge's word; UNKNOWN when a look failed."""
        error = next((raw.error for raw in raws if raw.error), "")
        return unknown(error) if error else self.judge(raws, facts, was_bad)


def passed(text: str) -> Verdict:
    return Verdict(outcome=Outcome.PASSED, text=text)


def unknown(text: str) -> Verdict:
    """The look failed or says nothing: never a reason to act."""
    return Verdict(outcome=Outcome.UNKNOWN, text=text)


def skipped(text: str) -> Verdict:
    """There is nothing to look at on this node; `text` says why."""
    return Verdict(outcome=Outcome.SKIPPED, text=text)


def failed(text: str, severity: Severity, advice: Advice) -> Verdict:
    return Verdict(outcome=Outcome.FAILED, severity=severity, advice=advice, text=text)
