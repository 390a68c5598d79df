"""The muting of site checks that have not passed their trial: their findings are only reported."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from steward.model.health import Finding, Severity, Trial, TrialState
from steward.model.ids import NodeName
from steward.model.observed import AgentView, Observed

SITE = "site."
"""The prefix of the site's own checks, which may change at any time."""
KEPT = 8
"""Versions remembered of one check: an old one that comes back needs no trial."""
KEPT_IN_ALL = 1000
"""Versions remembered of all checks together, however many the nodes report."""


def trial_key(check: str, version: str) -> str:
    """Return the key of a version's trial."""
    return f"{check}@{version}"


def with_unproven_findings_muted(
    seen: Observed, finding: Iterable[NodeName], trials: Mapping[str, Trial], *, canaries: bool
) -> Observed:
    """Return the picture with the bad findings of unproven checks as INFO, which is only reported.

    `finding` has at least the nodes whose agents report a finding. With `canaries`, a version without a trial is not
    trusted. Without them it is trusted if memory has room for its trial; else no person could disarm it.
    """
    trust = _Trust(trials, canaries)
    quiet = {
        node: replace(view, findings=tuple(trust.muted(f, view) for f in view.findings))
        for node, view in ((name, seen.agents[name]) for name in finding)
        if view.findings and any(trust.is_unproven(f, view) for f in view.findings)
    }
    return replace(seen, agents={**seen.agents, **quiet}) if quiet else seen


class _Trust:
    """The trust in checks, by the trials of their versions."""

    def __init__(self, trials: Mapping[str, Trial], canaries: bool) -> None:
        self._trials, self._canaries = trials, canaries
        self._full: frozenset[str] | None = None

    def muted(self, finding: Finding, view: AgentView) -> Finding:
        """Return the finding, or a copy with severity INFO if its check is unproven."""
        return replace(finding, severity=Severity.INFO) if self.is_unproven(finding, view) else finding

    def is_unproven(self, finding: Finding, view: AgentView) -> bool:
        """Return whether the finding is more than INFO and comes from an unproven check."""
        return finding.severity is not Severity.INFO and not self._is_trusted(finding.check, view)

    def _is_trusted(self, check: str, view: AgentView) -> bool:
        """Return whether the check is one of ours, or its version on this node is armed."""
        if not check.startswith(SITE):
            return True
        version = view.versions.get(check)
        if version is None:
            # a site check without a known version (its file could not be read) is not trusted
            return not self._canaries
        trial = self._trials.get(trial_key(check, version))
        if trial is None:
            return not self._canaries and self._has_room(check)
        return trial.state is TrialState.ARMED

    def _has_room(self, check: str) -> bool:
        """Return whether one more version of the check could be remembered."""
        if self._full is None:
            counts = Counter(one.check for one in self._trials.values())
            self._full = frozenset(name for name, count in counts.items() if count >= KEPT)
        return len(self._trials) < KEPT_IN_ALL and check not in self._full
