"""A configuration of LBNL Node Health Check, run as it is: what nhc finds is a finding; it marks no node itself."""

import re
import shlex

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.disk import USERS, only_told
from steward.checks.limits import Limits
from steward.checks.past import Past
from steward.checks.site import MAX_OUTPUT, MODE, NHC, TIMEOUT_S, period_s, site_id
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, RunProgram

NAME = "nhc"
_EVERY_S = 60.0
_SPARE_S = 2.0
"""nhc's own watchdog ends it so much before we do: then it says which check hung."""
_FAILED = re.compile(r"Health check failed: *(?P<why>[^\n]*)")
_BROKEN = frozenset((8, 9, 10, 129, 130, 142, 143, 145))
"""Called wrongly, ended by a signal or by its watchdog, or another one runs: nothing is said of the node."""
_LEAST_STRANGE = 100
"""From here on a status is a shell's, or a signal's."""
_OWN_NAME = "nhc-steward"
"""A name for nhc's log lines and pid file that a site's own nhc does not use."""
_HOST_SETTINGS = '[[ ! -r "$SYSCONFIGDIR/nhc" ]] || . "$SYSCONFIGDIR/nhc"'
"""The host's settings of nhc (/etc/default/nhc, /etc/sysconfig/nhc), read before ours: those that we need win. Under
another name nhc 1.4.3 would not read them, and under its own after ours."""
_MUTE = "LOGFILE='>/dev/null 2>&1'"
"""The setting that drops the output of checks: only the word of a check that failed comes back, however much was
printed before."""
_NO_OFFLINE = (
    f'eval "nhc_$(declare -f die)"; die() {{ MARK_OFFLINE=0; NHC_RM=slurm; SILENT=0; {_MUTE}; nhc_die "$@"; }}'
)
"""Every failed check ends in nhc's `die`, which marks the node as the variables of that moment say. A line of the
configuration can set them (`* || export MARK_OFFLINE=1`), so they are set again there."""
_NO_ONLINE = "nhcmain_mark_online() { :; }"


def nhc_check(limits: Limits) -> Check:
    """The check that runs nhc with the file of `checks.site.nhc`."""
    conf, timeout_s = limits.word(NHC), limits.number(TIMEOUT_S)
    probes = (ReadFiles(paths=(conf,)), _program(conf, timeout_s))

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        is_there = raws[0].files.get(conf) is not None
        if not is_there:
            return unknown(f"{conf}: no such file (checks.site.nhc)")
        return only_told(_judged(raws[1]), facts.names(USERS))

    def look(facts: Facts) -> tuple[Probe, ...]:
        return probes

    return Check(
        id=site_id(NAME),
        probes=look,
        judge=judge,
        default_mode=MODE,
        every_s=period_s(site_id(NAME), limits) or _EVERY_S,
        timeout_s=timeout_s + 2,
        is_quick=False,
        title=f"LBNL Node Health Check with {conf}",
        source="command",
        cost_ms=500.0,
    )


def _program(conf: str, timeout_s: float) -> RunProgram:
    """nhc evaluates each argument that is no option, in turn, before it reads the configuration."""
    limit_s = max(1, int(timeout_s - _SPARE_S))
    ours = (f"CONFFILE={shlex.quote(conf)}", f"TIMEOUT={limit_s}", f"NAME={_OWN_NAME}", "DETACHED_MODE=0", _MUTE)
    return RunProgram(
        argv=(NAME, _HOST_SETTINGS, *ours, _NO_OFFLINE, _NO_ONLINE), timeout_s=timeout_s, max_bytes=MAX_OUTPUT
    )


def _judged(raw: Raw) -> Verdict:
    """A status that nhc has for itself says nothing of the node; with any other it, or a check that ended it, found
    fault."""
    status = raw.returncode
    found = _FAILED.findall(raw.output)
    if status not in _BROKEN and found:
        return failed(f"nhc: {found[0].strip()}", Severity.DEGRADED, Advice.NONE)
    if status == 0:
        return passed("nhc found nothing")
    if status is not None and 0 < status < _LEAST_STRANGE and status not in _BROKEN:
        return failed(f"nhc ended with status {status} and gave no reason", Severity.DEGRADED, Advice.NONE)
    return unknown(f"nhc ended with status {status}: {found[-1] if found else raw.output.strip()[:200]}")
