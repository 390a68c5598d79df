"""Which checks run on this node: the built-in ones that are not switched off, and the site's own."""

from collections.abc import Mapping
from pathlib import Path

from steward.adapters.site_dir import Digests, look, make_results_dir
from steward.checks import CHECKS
from steward.checks.check import Check
from steward.checks.limits import Limits
from steward.checks.nhc import NAME as NHC
from steward.checks.nhc import nhc_check
from steward.checks.site import site_check, site_id
from steward.model.health import Finding, Outcome

_OFF = "off"


class NodeCatalogue:
    """`results_dir` is where site checks may keep things."""

    def __init__(self, limits: Limits, site_checks_dir: Path, *, results_dir: Path) -> None:
        self._results_dir = results_dir
        self._digests = Digests()
        self._files: dict[str, Path] = {}
        self._limits = limits
        self._site_checks_dir = site_checks_dir
        self._built_in = tuple(check for check in CHECKS if check.mode(limits) != _OFF)

    def __call__(self) -> tuple[tuple[Check, ...], tuple[Finding, ...]]:
        """The checks to run now, and what is to be said of site checks that must not run."""
        site = look(self._site_checks_dir)
        if site.programs:
            make_results_dir(self._results_dir)
        files = {site_id(path.name): path for path in site.programs}
        checks = {site_id(path.name): self._site_check(path) for path in site.programs}
        if self._limits.site.nhc:
            checks[site_id(NHC)] = nhc_check(self._limits)
            files[site_id(NHC)] = Path(self._limits.site.nhc)
        wanted = tuple(check for check in checks.values() if check.mode(self._limits) != _OFF)
        self._files = {check.id: files[check.id] for check in wanted}
        return (*self._built_in, *wanted), _refused(site.refused)

    def versions(self) -> Mapping[str, str]:
        """Site check -> digest of the file that it is, as it was when the checks were listed last."""
        digests = self._digests.of(self._files.values())
        return {check: digests[path] for check, path in self._files.items() if path in digests}

    def _site_check(self, path: Path) -> Check:
        return site_check(str(path), path.name, self._limits, results_dir=str(self._results_dir))


def _refused(lines: tuple[str, ...]) -> tuple[Finding, ...]:
    if not lines:
        return ()
    return (Finding(check="site", outcome=Outcome.UNKNOWN, text=f"not run: {'; '.join(lines)}"),)
