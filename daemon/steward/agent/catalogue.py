"""Which checks run on this node: the built-in ones that are not switched off, and the site's own."""

from pathlib import Path

from steward.adapters.site_dir import look
from steward.checks import CHECKS
from steward.checks.check import Check
from steward.checks.limits import Limits
from steward.checks.site import site_check
from steward.model.health import Finding, Outcome

_OFF = "off"


class NodeCatalogue:
    def __init__(self, limits: Limits, site_checks_dir: Path) -> None:
        self._limits = limits
        self._site_checks_dir = site_checks_dir
        self._built_in = tuple(check for check in CHECKS if check.mode(limits) != _OFF)

    def __call__(self) -> tuple[tuple[Check, ...], tuple[Finding, ...]]:
        """The checks to run now, and what is to be said of site checks that must not run."""
        site = look(self._site_checks_dir)
        checks = tuple(site_check(str(path), path.name, self._limits) for path in site.programs)
        wanted = tuple(check for check in checks if check.mode(self._limits) != _OFF)
        return (*self._built_in, *wanted), _refused(site.refused)


def _refused(lines: tuple[str, ...]) -> tuple[Finding, ...]:
    if not lines:
        return ()
    return (Finding(check="site", outcome=Outcome.UNKNOWN, text=f"not run: {'; '.join(lines)}"),)
