"""Short lines about a node's checks, deep checks and repairs, and the results of each check over all nodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.case import Remedy
from steward.model.deep import DeepRun
from steward.model.health import Advice, Finding, Outcome, TrialState
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.text import ago, count_noun, span, time_left
from steward.policy.draft import Draft
from steward.policy.facts.verdict import may_act_on, mode_of
from steward.policy.guards.breaker import guards
from steward.policy.guards.ladder import identity
from steward.policy.guards.lemons import lemons, score_text
from steward.policy.traits import HEALTH
from steward.policy.trust import SITE, trial_key
from steward.views.node_verdict import node_verdict

_SHOWN = 5
_NAMED = 12
_TOGETHER_S = 120
"""Checks whose first passes lie this close together began together, as after a start of the agent."""


def verdict_lines(name: NodeName, draft: Draft) -> list[str]:
    """Return the verdict as `steward nodes` shows it, which is the first thing to read."""
    said = node_verdict(name, draft)
    lasts = f" (for {span(draft.now - said.since)})" if said.since else ""
    lines = [f"{name} is {said.word.value.upper()}{lasts}: {said.evidence}."]
    return [*lines, f"Next: {said.next}."] if said.next else lines


def finding_lines(name: NodeName, draft: Draft) -> list[str]:
    """Return the bad findings, then the unknown ones, then the passed and skipped checks by number and name."""
    view = draft.seen.agents.get(name)
    if view is None:
        return []
    bad = sorted((f for f in view.findings if f.is_bad), key=lambda f: (-f.severity.rank, f.at))
    unknown = [f for f in view.findings if f.outcome is Outcome.UNKNOWN]
    lines = [_bad_line(f, view, draft) for f in bad]
    lines += [f"Check {f.check} says unknown ({_unknown_words(f, draft)}): {f.text}" for f in unknown]
    if view.passed:
        since = _passes_since(view.passes_since, draft.now) if view.is_heard else " Its agent is gone: that was before."
        lines.append(f"{count_noun(len(view.passed), 'check')} passed: {_some(view.passed)}.{since}")
    if view.skipped:
        count, verb = count_noun(len(view.skipped), "check"), "does" if len(view.skipped) == 1 else "do"
        lines.append(f"{count} {verb} not apply here (no such hardware or tool): {_some(view.skipped)}.")
    return lines


def _bad_line(finding: Finding, view: AgentView, draft: Draft) -> str:
    since = f", {ago(finding.at, draft.now)}" if finding.at else ""
    about = f" [{finding.hardware}]" if finding.hardware else ""
    advice = f", first remedy {finding.advice.value}" if finding.advice.value != "none" else ""
    only = _why_only_told(finding, view, draft)
    passed = last_pass(finding, draft.now)
    last = f"; {passed}" if passed else ""
    return f"Check {finding.check} failed ({finding.severity.value}{since}{advice}{last}{only}){about}: {finding.text}"


def _unknown_words(finding: Finding, draft: Draft) -> str:
    lasts = f"for {span(draft.now - finding.at)}, " if finding.at else ""
    passed = last_pass(finding, draft.now)
    return f"{lasts}never acted on{f'; {passed}' if passed else ''}"


def last_pass(finding: Finding, now: float) -> str:
    """Return when the check last passed; empty if its agent saw no pass, or if the finding is an event."""
    if finding.good_since:
        return f"its looks have passed again for {span(now - finding.good_since)}, not long enough yet"
    return f"last passed {ago(finding.passed_at, now)}" if finding.passed_at else ""


def _passes_since(times: Mapping[str, int], now: float) -> str:
    """Return since when the checks pass, with the names of those that began later; empty if not reported."""
    if not times:
        return ""
    first = min(times.values())
    later = sorted((-at, check) for check, at in times.items() if at > first + _TOGETHER_S)
    named = [f"{check} only for {span(now + at)}" for at, check in later[:_SHOWN]]
    more = [f"and {len(later) - _SHOWN} more"] if len(later) > _SHOWN else []
    return f" They have passed for {span(now - first)}{''.join(f'; {each}' for each in [*named, *more])}."


def _why_only_told(finding: Finding, view: AgentView, draft: Draft) -> str:
    """Return why the finding is only reported; empty if it has an effect."""
    version = view.versions.get(finding.check) if finding.check.startswith(SITE) else None
    trial = draft.trials.get(trial_key(finding.check, version)) if version else None
    if version and trial is None and draft.want.health.canary_node_count:
        return "; it only reports: no trial of this version has begun"
    if trial is not None and trial.state is not TrialState.ARMED:
        return f"; it only reports: {trial.state.value}, `steward check trials`"
    if may_act_on(finding, draft):
        return ""
    mode = mode_of(finding.check, draft)
    return "; a shared resource, no node is touched" if mode == "drain" else f"; mode {mode}, no node is touched"


def _some(checks: frozenset[str]) -> str:
    names = sorted(checks)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def guard_lines(name: NodeName, draft: Draft) -> list[str]:
    """Return the tripped breakers that hold up the node's repair, and the node's incidents."""
    view = draft.seen.agents.get(name)
    checks = sorted({f.check for f in view.findings if f.is_bad}) if view else []
    scopes = dict.fromkeys(scope for check in checks or ["agent"] for scope in guards(name, check, draft))
    breakers = [draft.breakers[scope] for scope in scopes if scope in draft.breakers]
    lines = [
        f"Breaker: {one.text}; one repair is let through {time_left(one.tripped + one.patience_s, draft.now)}."
        for one in breakers
    ]
    parts = (one for _, one in sorted(draft.incidents.items()) if one.over is None and name in one.nodes)
    return [*lines, *(f"Incident {one.kind}, for {span(draft.now - one.since)}: {one.text}." for one in parts)]


def hardware_lines(name: NodeName, memory: Memory, draft: Draft) -> list[str]:
    """Return the newest repairs of the node and its hardware, and lemon scores with their arithmetic."""
    view = draft.seen.agents.get(name)
    pieces = {*(view.hardware if view else ()), identity("", name, draft)}
    done = [(r, key) for key, many in memory.remedies.items() for r in many if key in pieces or r.node == name]
    newest = sorted(done, key=lambda one: (-one[0].at, one[1]))[:_SHOWN]
    lines = [_remedy_line(remedy, key, draft.now) for remedy, key in newest]
    scored = (one for one in lemons(memory, len(draft.seen.nodes), draft.now) if one.piece in pieces)
    for one in scored:
        advice = "; a candidate for quarantine" if one.is_candidate else ""
        lines.append(f"Lemon score {one.score:.1f} of {one.piece}{advice}: {score_text(one.parts)}")
    return lines


def _remedy_line(remedy: Remedy, piece: str, now: float) -> str:
    if remedy.rung is Advice.NONE:
        return f"Checked {ago(remedy.at, now)}, nothing repaired, after {remedy.check} (case {remedy.case})."
    return f"Done {ago(remedy.at, now)}: {remedy.rung.value} for {remedy.check} (case {remedy.case}, hardware {piece})."


def deep_lines(name: NodeName, draft: Draft) -> list[str]:
    """Return the node's deep checks: those under way, and the last results."""
    mine = sorted((run for run in draft.deeps.values() if name in run.nodes), key=lambda run: (-run.asked, run.id))
    return [_deep_line(name, run, draft.now) for run in mine[:_SHOWN]]


def _deep_line(name: NodeName, run: DeepRun, now: float) -> str:
    result = run.results.get(name)
    kinds = ", ".join(sorted(kind.value for kind in run.kinds)) or "one job"
    if result is None:
        return f"Deep check {run.id} ({run.cause.value}; {kinds}): {run.state.value}, asked {ago(run.asked, now)}."
    at = run.ended if run.ended is not None else run.asked
    return f"Deep check {run.id} ({run.cause.value}; {kinds}), {ago(at, now)}: {result.value}: {run.why.get(name, '')}"


def feature_lines(node: Node | None) -> list[str]:
    """Return the features of the node that users see in Slurm."""
    ours = sorted(f for f in node.active_features if f.startswith(HEALTH)) if node else []
    return [f"Node feature in Slurm: {', '.join(ours)}."] if ours else []


@dataclass(slots=True)
class CheckResults:
    """The results of one check over all nodes with a connected agent.

    `failed` and `unknown` have each node's finding.
    """

    passed: int = 0
    skipped: int = 0
    failed: dict[NodeName, Finding] = field(default_factory=dict)
    unknown: dict[NodeName, Finding] = field(default_factory=dict)


def check_results(agents: Mapping[NodeName, AgentView]) -> dict[str, CheckResults]:
    """Return the results of each check by its id, sorted."""
    found: defaultdict[str, CheckResults] = defaultdict(CheckResults)
    views = [view for view in agents.values() if view.connected]
    for check, count in _named(view.passed for view in views):
        found[check].passed += count
    for check, count in _named(view.skipped for view in views):
        found[check].skipped += count
    for view in views:
        for finding in view.findings:
            _add(finding, view.node, found[finding.check])
    return dict(sorted(found.items()))


def _named(many: Iterable[frozenset[str]]) -> Iterable[tuple[str, int]]:
    """Yield each check with the number of sets that contain it."""
    # Most nodes pass the same checks: equal sets are counted once.
    return ((check, count) for names, count in Counter(many).items() for check in names)


def _add(finding: Finding, node: NodeName, results: CheckResults) -> None:
    match finding.outcome:
        case Outcome.FAILED:
            results.failed.setdefault(node, finding)
        case Outcome.UNKNOWN:
            results.unknown.setdefault(node, finding)
        case Outcome.PASSED:
            results.passed += 1
        case Outcome.SKIPPED:
            results.skipped += 1
