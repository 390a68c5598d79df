"""The site's own checks: executables that print a line or exit like Nagios plugins, and LBNL Node Health Check."""

import re
import shlex

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped, unknown
from steward.checks.disk import USERS, report_only_if_users_filled_it
from steward.checks.limits import Limits, Setting, TextSetting, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, RunProgram

MAX_OUTPUT = 65536
_RESULT = re.compile(
    r"^HEALTH_CHECK_RESULT:(?P<host>[^:]*):(?P<word>Passed|Failed|Skipped):(?P<advice>none|reboot|replace):(?P<why>.*)$",
    re.MULTILINE,
)
_ADVICE = {"none": Advice.NONE, "reboot": Advice.REBOOT, "replace": Advice.REPLACE}
MODE = "report"
TIMEOUT_S = Threshold(
    name="site.timeout_s",
    default=10.0,
    unit="s",
    text="Time limit of each site check; the result of one that takes longer is unknown.",
    low=0.1,
    high=600.0,
)
NHC = TextSetting(
    name="site.nhc",
    text="A configuration of LBNL Node Health Check to run as the check `site.nhc`, such as `/etc/nhc/nhc.conf`; nhc "
    "then marks no node by itself.",
)
_NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,34}$")


def is_name(file_name: str) -> bool:
    """Return whether a file's name can be part of a check id: a-z, 0-9, `_`, `.` and `-`, 35 characters at most."""
    return _NAME.match(file_name) is not None


def site_id(file_name: str) -> str:
    return f"site.{file_name}"


def every_s(id: str) -> Threshold:
    text = "Seconds between two runs; unset: `check_interval_s`."
    return Threshold(name=f"{id}.every_s", default=None, unit="s", text=text)


def params(id: str) -> TextSetting:
    return TextSetting(name=f"{id}.params", text="The value of `HC_TEST_PARAMS` in the file's environment.")


def settings_of(id: str) -> tuple[Setting, ...]:
    """Return the settings of one site check, but for its mode."""
    return (every_s(id), params(id))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge by the last `HEALTH_CHECK_RESULT:` line about this node, or else by a Nagios plugin's exit status."""
    return report_only_if_users_filled_it(_judged(raws, facts), facts.names(USERS))


def _judged(raws: tuple[Raw, ...], facts: Facts) -> Judgement:
    (raw,) = raws
    results = list(_RESULT.finditer(raw.output))
    if results:
        return _last_result(results, facts.node)
    if raw.truncated:
        return unknown(f"more than {MAX_OUTPUT} bytes of output and no result in the first of them")
    first = raw.output.strip().split("\n", 1)[0]
    match raw.returncode:
        case 0:
            return passed(first)
        case 1:
            return failed(first or "warning", Severity.SUSPECT, Advice.NONE)
        case 2:
            return failed(first or "critical", Severity.DEGRADED, Advice.NONE)
        case code:
            return unknown(f"exit status {code}: {first}")


def _last_result(results: "list[re.Match[str]]", node: str) -> Judgement:
    """Return the verdict of the last result line about this node."""
    # If all results are about one host, that host is this node, perhaps under another name.
    ours = [result for result in results if _host_name(result["host"]) == _host_name(node)]
    hosts = {_host_name(result["host"]) for result in results}
    if not ours and len(hosts) > 1:
        return unknown(f"results of {len(hosts)} hosts, none of {node}")
    return _result((ours or results)[-1])


def _host_name(host: str) -> str:
    return host.strip().partition(".")[0].lower()


def _result(result: "re.Match[str]") -> Judgement:
    why = result["why"].strip()
    match result["word"]:
        case "Passed":
            return passed(why)
        case "Skipped":
            return skipped(why)
        case _:
            return failed(why or "failed", Severity.DEGRADED, _ADVICE[result["advice"]])


def period_s(id: str, limits: Limits) -> float | None:
    """Return the period that the site sets for the check; None if it sets none."""
    return limits.number(every_s(id)) if limits.is_set(every_s(id)) else None


def site_check(path: str, file_name: str, limits: Limits, *, results_dir: str = "") -> Check:
    """Return the check that runs the executable at `path`, which may keep files in `results_dir`."""
    id, timeout_s = site_id(file_name), limits.number(TIMEOUT_S)
    program = RunProgram(
        argv=(path,),
        env=(("HC_TEST_PARAMS", limits.text(params(id))), ("HC_RESULTS_DIR", results_dir)),
        stamp_env="HC_TIMESTAMP",
        timeout_s=timeout_s,
        max_bytes=MAX_OUTPUT,
    )

    def probes(facts: Facts) -> tuple[RunProgram, ...]:
        return (program,)

    return Check(
        id=id,
        probes=probes,
        judge=judge,
        default_mode=MODE,
        every_s=period_s(id, limits),
        timeout_s=timeout_s + 2,
        title=f"the site's own check {file_name}",
        source="command",
    )


# LBNL Node Health Check with the site's configuration as it is: its result is a finding; nhc itself marks no node.

_NHC = "nhc"
NHC_ID = site_id(_NHC)
_EVERY_S = 60.0
_MARGIN_S = 2.0
"""How long before our timeout nhc's own watchdog ends nhc, because the watchdog says which check hung."""
_FAILED = re.compile(r"Health check failed: *(?P<why>[^\n]*)")
_NO_VERDICT = frozenset((8, 9, 10, 129, 130, 142, 143, 145))
"""Exit statuses that say nothing about the node: wrong usage, a signal, nhc's watchdog, or another nhc runs."""
_LEAST_OF_SHELL = 100
"""The lowest exit status that comes from a shell or a signal."""
_OWN_NAME = "nhc-steward"
"""The name in our nhc's log lines and pid file, different from the site's own nhc."""
_HOST_SETTINGS = '[[ ! -r "$SYSCONFIGDIR/nhc" ]] || . "$SYSCONFIGDIR/nhc"'
"""A command that reads the host's settings of nhc (/etc/default/nhc, /etc/sysconfig/nhc) before ours, so that ours win.
nhc 1.4.3 itself reads them after ours, and under another name not at all."""
_MUTE = "LOGFILE='>/dev/null 2>&1'"
"""The setting that drops the output of checks: only the message of a failed check comes back."""
_NO_OFFLINE = (
    f'eval "nhc_$(declare -f die)"; die() {{ MARK_OFFLINE=0; NHC_RM=slurm; SILENT=0; {_MUTE}; nhc_die "$@"; }}'
)
"""A wrapper of nhc's `die`, which every failed check calls and which marks the node if its variables say so. A line of
the configuration can set the variables (`* || export MARK_OFFLINE=1`), so the wrapper sets them again."""
_NO_ONLINE = "nhcmain_mark_online() { :; }"


def nhc_check(limits: Limits) -> Check:
    """Return the check that runs nhc with the file of `checks.site.nhc`."""
    conf, timeout_s = limits.text(NHC), limits.number(TIMEOUT_S)
    probes = (ReadFiles(paths=(conf,)), _nhc_program(conf, timeout_s))

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        is_there = raws[0].files.get(conf) is not None
        if not is_there:
            return unknown(f"{conf}: no such file (checks.site.nhc)")
        return report_only_if_users_filled_it(_nhc_judged(raws[1]), facts.names(USERS))

    def look(facts: Facts) -> tuple[Probe, ...]:
        return probes

    return Check(
        id=NHC_ID,
        probes=look,
        judge=judge,
        default_mode=MODE,
        every_s=period_s(NHC_ID, limits) or _EVERY_S,
        timeout_s=timeout_s + 2,
        is_quick=False,
        title=f"LBNL Node Health Check with {conf}",
        source="command",
        cost_ms=500.0,
    )


def _nhc_program(conf: str, timeout_s: float) -> RunProgram:
    """Return the probe that runs nhc with the configuration `conf`, without marking the node."""
    limit_s = max(1, int(timeout_s - _MARGIN_S))
    # nhc evaluates each argument that is no option, in turn, before it reads the configuration.
    ours = (f"CONFFILE={shlex.quote(conf)}", f"TIMEOUT={limit_s}", f"NAME={_OWN_NAME}", "DETACHED_MODE=0", _MUTE)
    return RunProgram(
        argv=(_NHC, _HOST_SETTINGS, *ours, _NO_OFFLINE, _NO_ONLINE), timeout_s=timeout_s, max_bytes=MAX_OUTPUT
    )


def _nhc_judged(raw: Raw) -> Judgement:
    """Judge nhc's exit status and output."""
    status = raw.returncode
    found = _FAILED.findall(raw.output)
    if status not in _NO_VERDICT and found:
        return failed(f"nhc: {found[0].strip()}", Severity.DEGRADED, Advice.NONE)
    if status == 0:
        return passed("nhc found nothing")
    if (
        status is not None and 0 < status < _LEAST_OF_SHELL and status not in _NO_VERDICT
    ):  # nhc, or a check that ended it
        return failed(f"nhc ended with status {status} and gave no reason", Severity.DEGRADED, Advice.NONE)
    return unknown(f"nhc ended with status {status}: {found[-1] if found else raw.output.strip()[:200]}")
