"""What Slurm's hooks are told of this node: the worst that stands now, at once and without a look."""

import logging
from collections.abc import Callable

from steward.adapters.wire.verdict_line import FINE, UNKNOWN, bad_line
from steward.model.health import Finding, Outcome, Scope

log = logging.getLogger(__name__)

_DRAIN = "drain"


class VerdictDesk:
    """`findings` are what stands; `mode` is the site's word for a check: what is only reported refuses no job."""

    def __init__(self, *, findings: Callable[[], tuple[Finding, ...]], mode: Callable[[str], str]) -> None:
        self._findings = findings
        self._mode = mode

    def serve(self, peer: int) -> bytes:
        """The line for who asks."""
        findings = self._findings()
        worst = max(filter(self._counts, findings), key=lambda one: one.severity.rank, default=None)
        if worst is not None:
            log.info("verdict bad check=%s severity=%s peer=%d", worst.check, worst.severity.value, peer)
            return bad_line(worst.severity, worst.check, worst.text)
        return FINE if any(one.outcome is Outcome.PASSED for one in findings) else UNKNOWN

    def _counts(self, finding: Finding) -> bool:
        return finding.is_bad and finding.scope is Scope.NODE and self._mode(finding.check) == _DRAIN
