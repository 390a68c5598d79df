"""The site's own executables: one line of text, or Nagios exit codes, in; a verdict out. And its configuration of LBNL
Node Health Check."""

import re
import shlex

from steward.checks.check import Check, Facts, Past, Verdict, failed, passed, skipped, unknown
from steward.checks.disk import USERS, only_told
from steward.checks.limits import Limits, Setting, Text, Threshold
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
    text="Time limit of each; the result of a check that takes longer is unknown.",
    low=0.1,
    high=600.0,
)
NHC = Text(
    name="site.nhc",
    text="A configuration of LBNL Node Health Check to run as the check `site.nhc`, such as `/etc/nhc/nhc.conf`; nhc "
    "itself then marks no node.",
)
_NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,34}$")


def is_name(file_name: str) -> bool:
    """Whether a file's name can be part of a check id: a-z, 0-9, `_`, `.` and `-`, 35 characters at most."""
    return _NAME.match(file_name) is not None


def site_id(file_name: str) -> str:
    return f"site.{file_name}"


def every_s(id: str) -> Threshold:
    text = "Seconds between two runs, where it is not `check_interval_s`."
    return Threshold(name=f"{id}.every_s", default=None, unit="s", text=text)


def params(id: str) -> Text:
    return Text(name=f"{id}.params", text="What the file gets in `HC_TEST_PARAMS`.")


def settings_of(id: str) -> tuple[Setting, ...]:
    """What the table of one of them may hold."""
    return (every_s(id), params(id))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """The last `HEALTH_CHECK_RESULT:` line that is about this node counts; without one, the exit status as Nagios
    plugins use it."""
    return only_told(_judged(raws, facts), facts.names(USERS))


def _judged(raws: tuple[Raw, ...], facts: Facts) -> Verdict:
    (raw,) = raws
    results = list(_RESULT.finditer(raw.output))
    if results:
        return _told(results, facts.node)
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


def _told(results: "list[re.Match[str]]", node: str) -> Verdict:
    """The verdict of a site's check. Of results about several hosts those of this node count. One host alone is this
    one, under whatever name."""
    ours = [result for result in results if _short(result["host"]) == _short(node)]
    hosts = {_short(result["host"]) for result in results}
    if not ours and len(hosts) > 1:
        return unknown(f"results of {len(hosts)} hosts, none of {node}")
    return _result((ours or results)[-1])


def _short(host: str) -> str:
    return host.strip().partition(".")[0].lower()


def _result(result: "re.Match[str]") -> Verdict:
    why = result["why"].strip()
    match result["word"]:
        case "Passed":
            return passed(why)
        case "Skipped":
            return skipped(why)
        case _:
            return failed(why or "failed", Severity.DEGRADED, _ADVICE[result["advice"]])


def period_s(id: str, limits: Limits) -> float | None:
    """What the site said; None: nothing."""
    return limits.number(every_s(id)) if limits.says(every_s(id)) else None


def site_check(path: str, file_name: str, limits: Limits, *, results_dir: str = "") -> Check:
    """The check that runs the executable at `path`. It may keep things in `results_dir`."""
    id, timeout_s = site_id(file_name), limits.number(TIMEOUT_S)
    program = RunProgram(
        argv=(path,),
        env=(("HC_TEST_PARAMS", limits.word(params(id))), ("HC_RESULTS_DIR", results_dir)),
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


# A configuration of LBNL Node Health Check, run as it is: what nhc finds is a finding; it marks no node itself.

_NHC = "nhc"
NHC_ID = site_id(_NHC)
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
    probes = (ReadFiles(paths=(conf,)), _nhc_program(conf, timeout_s))

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        is_there = raws[0].files.get(conf) is not None
        if not is_there:
            return unknown(f"{conf}: no such file (checks.site.nhc)")
        return only_told(_nhc_judged(raws[1]), facts.names(USERS))

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
    """nhc evaluates each argument that is no option, in turn, before it reads the configuration."""
    limit_s = max(1, int(timeout_s - _SPARE_S))
    ours = (f"CONFFILE={shlex.quote(conf)}", f"TIMEOUT={limit_s}", f"NAME={_OWN_NAME}", "DETACHED_MODE=0", _MUTE)
    return RunProgram(
        argv=(_NHC, _HOST_SETTINGS, *ours, _NO_OFFLINE, _NO_ONLINE), timeout_s=timeout_s, max_bytes=MAX_OUTPUT
    )


def _nhc_judged(raw: Raw) -> Verdict:
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
