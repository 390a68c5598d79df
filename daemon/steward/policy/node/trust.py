"""A check that may change and has not shown yet that it is sane is listened to, and acts on nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from steward.model.health import Finding, Severity, Trial, TrialState
from steward.model.ids import NodeName
from steward.model.observed import AgentView, Observed

SITE = "site."
"""The prefix of checks that may change."""


def trial_key(check: str, version: str) -> str:
    return f"{check}@{version}"


def hushed(seen: Observed, finding: Iterable[NodeName], trials: Mapping[str, Trial], *, canaries: bool) -> Observed:
    """The picture in which what such checks find bad is INFO, which is only told. `finding`: nodes whose agents tell of
    something are among these; `canaries`: a version without a trial is not trusted."""
    quiet = {
        node: replace(view, findings=tuple(_hush(f, view, trials, canaries) for f in view.findings))
        for node, view in ((name, seen.agents[name]) for name in finding)
        if view.findings and any(_is_unproved(f, view, trials, canaries) for f in view.findings)
    }
    return replace(seen, agents={**seen.agents, **quiet}) if quiet else seen


def _is_unproved(finding: Finding, view: AgentView, trials: Mapping[str, Trial], canaries: bool) -> bool:
    return finding.severity is not Severity.INFO and not _is_trusted(finding.check, view, trials, canaries)


def _hush(finding: Finding, view: AgentView, trials: Mapping[str, Trial], canaries: bool) -> Finding:
    return replace(finding, severity=Severity.INFO) if _is_unproved(finding, view, trials, canaries) else finding


def _is_trusted(check: str, view: AgentView, trials: Mapping[str, Trial], canaries: bool) -> bool:
    """Whether the check is one of ours, or one whose version on this node is armed. A site's check without a known
    version (its file could not be read) is not trusted."""
    if not check.startswith(SITE):
        return True
    version = view.versions.get(check)
    if version is None:
        return not canaries
    trial = trials.get(trial_key(check, version))
    return not canaries if trial is None else trial.state is TrialState.ARMED
