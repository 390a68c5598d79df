"""The checks that run on this node: the built-in ones that are not disabled, and the site's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steward.adapters.node.site_dir import Digests, look, make_results_dir, why_not_read
from steward.checks import CHECKS
from steward.checks.check import Check
from steward.checks.limits import Limits
from steward.checks.site import NHC, NHC_ID, nhc_check, site_check, site_id
from steward.model.health import Finding, Outcome

_OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChecks:
    """The site's own checks that run.

    `versions` are the digests of their files; `refused` holds a finding if some of the files must not run.
    """

    checks: tuple[Check, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Finding, ...] = ()


def built_in(limits: Limits) -> tuple[Check, ...]:
    """Return the built-in checks that are not disabled."""
    return tuple(check for check in CHECKS if check.mode(limits) != _OFF)


class SiteCatalogue:
    """The list of the site's checks, made anew at each call; site checks may keep files in `results_dir`."""

    def __init__(self, limits: Limits, site_checks_dir: Path, *, results_dir: Path) -> None:
        self._results_dir = results_dir
        self._digests = Digests()
        self._limits = limits
        self._site_checks_dir = site_checks_dir

    def __call__(self) -> SiteChecks:
        """Return the site's checks as the files are now; block for as long as their file system does."""
        site = look(self._site_checks_dir)
        if site.programs:
            make_results_dir(self._results_dir)
        files = {site_id(path.name): path for path in site.programs}
        checks = {site_id(path.name): self._site_check(path) for path in site.programs}
        named, refused = self._limits.text(NHC), site.refused
        conf = Path(named)
        if why := why_not_read(conf) if named else "":
            refused = (*refused, f"{conf}: {why}")
        elif named:
            checks[NHC_ID] = nhc_check(self._limits)
            files[NHC_ID] = conf
        wanted = tuple(check for check in checks.values() if check.mode(self._limits) != _OFF)
        digests = self._digests.of(files[check.id] for check in wanted)
        versions = {check.id: digests[files[check.id]] for check in wanted if files[check.id] in digests}
        return SiteChecks(checks=wanted, versions=versions, refused=_refused(refused))

    def _site_check(self, path: Path) -> Check:
        return site_check(str(path), path.name, self._limits, results_dir=str(self._results_dir))


def _refused(lines: tuple[str, ...]) -> tuple[Finding, ...]:
    if not lines:
        return ()
    return (Finding(check="site", outcome=Outcome.UNKNOWN, text=f"not run: {'; '.join(lines)}"),)
