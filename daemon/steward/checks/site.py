"""The site's own executables: one line of text, or Nagios exit codes, in; a verdict out."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.disk import USERS, only_told
from steward.checks.limits import Limits, Setting, Text, Threshold
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunProgram

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
