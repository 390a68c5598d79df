"""The check of what NVIDIA's DCGM service reports, where it runs with its health watches switched on.

DCGM also reports a failure if its own measurement failed: anything but an incident of a named system is judged unknown.
"""

import json
from collections.abc import Iterator
from typing import Any

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped, unknown
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunProgram

_EVERY_S = 300.0
_ANSWER_S, _KILL_S = 16.0, 2.0
_NOT_FOUND, _HUNG = 127, (124, 137)
"""The exit codes of `timeout`: no such program; it did not end in time, or only when it was killed."""
_OVERALL = "Overall Health"
_ABSENT = ("unable to establish a connection", "unable to connect", "connection refused")
_NO_WATCHES = "health watches not enabled"
_SYSTEMS = {
    "memory system": (Severity.DEGRADED, Advice.RESET_GPU),
    "nvlink system": (Severity.DEGRADED, Advice.RESET_GPU),
    "sm system": (Severity.DEGRADED, Advice.RESET_GPU),
    "mcu system": (Severity.DEGRADED, Advice.RESET_GPU),
    "pmu system": (Severity.DEGRADED, Advice.RESET_GPU),
    "driver": (Severity.DEGRADED, Advice.REBOOT),
    "pcie system": (Severity.SUSPECT, Advice.REBOOT),
    "inforom system": (Severity.SUSPECT, Advice.NONE),
    "thermal system": (Severity.SUSPECT, Advice.NONE),
    "power system": (Severity.SUSPECT, Advice.NONE),
}
"""The severity of a failure of each of DCGM's systems; a warning is only reported."""


def probes(facts: Facts) -> tuple[RunProgram, ...]:
    return (
        RunProgram(
            argv=("timeout", f"--kill-after={_KILL_S:g}", f"{_ANSWER_S:g}", "dcgmi", "health", "-c", "-j"),
            timeout_s=_ANSWER_S + 2 * _KILL_S,
            max_bytes=262144,
            may_be_absent=True,
        ),
    )


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    (raw,) = raws
    answer = raw.output.strip()
    if raw.returncode in (None, _NOT_FOUND):
        return skipped("dcgmi is not installed")
    if raw.returncode in _HUNG:
        text = f"the DCGM service gives no answer within {_ANSWER_S:.0f} s: it hangs"
        return failed(text, Severity.DEGRADED, Advice.RESTART_SERVICE, hardware="nvidia-dcgm")
    if any(words in answer.lower() for words in _ABSENT):
        return skipped("the DCGM service does not run on this node")
    if _NO_WATCHES in answer.lower():
        return skipped("DCGM's health watches are off: switch them on with `dcgmi health -s a`")
    try:
        body = json.loads(answer)["body"]
        overall = str(body[_OVERALL]["value"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return unknown(f"dcgmi health: rc={raw.returncode} {answer[:200]}")
    return _judge_incidents(overall, list(_incidents(body, ())))


def _judge_incidents(overall: str, incidents: list[tuple[str, str, str, str]]) -> Judgement:
    """Return the verdict on DCGM's answer; the worst incident decides."""
    if overall == "Healthy" and not incidents:
        return passed("DCGM sees nothing wrong")
    if not incidents or overall not in ("Healthy", "Warning", "Failure"):
        return unknown(f"DCGM says {overall[:40]} and names no system")
    ranked = sorted(incidents, key=lambda one: _weight(one)[0].rank, reverse=True)
    entity, _, _, _ = ranked[0]
    severity, advice = _weight(ranked[0])
    text = "; ".join(f"{entity} {system}: {health} {why}".strip() for entity, system, health, why in ranked[:4])
    return failed(text, severity, advice, hardware=entity)


def _weight(incident: tuple[str, str, str, str]) -> tuple[Severity, Advice]:
    _, system, health, _ = incident
    return _SYSTEMS[system.lower()] if health == "Failure" else (Severity.INFO, Advice.NONE)


def _incidents(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (entity, system, Warning or Failure, message) for each of DCGM's systems named anywhere in the tree."""
    if not isinstance(tree, dict) or len(path) > 8:
        return
    for name, below in tree.items():
        if not isinstance(below, dict):
            continue
        health = below.get("value")
        if name.lower() in _SYSTEMS and health in ("Warning", "Failure"):
            why = below.get("overflow")
            lines = why if isinstance(why, list) else [why or ""]
            yield " ".join(path), name, str(health), " ".join(map(str, lines))[:200]
        else:
            yield from _incidents(below, path if name in ("children", "Errors") else (*path, name))


DCGM = Check(
    id="dcgm",
    probes=probes,
    judge=judge,
    default_mode="report",
    every_s=_EVERY_S,
    timeout_s=_ANSWER_S + 3 * _KILL_S,
    is_quick=False,
    title="DCGM's service reports a failure",
    source="command",
    cost_ms=200.0,
)
