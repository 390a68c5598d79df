"""Keep a feature on each node that shows the state of its checks (`HealthCheck:Passed`), for users' `--constraint`.

Slurm goes back to the features of slurm.conf whenever it reads that file, so the feature is compared in every picture
and written only where it differs.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.action import SetFeature
from steward.model.deep import DeepResult
from steward.model.events import Level
from steward.model.ids import Key, NodeName
from steward.model.memory import Shown
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.verdict import monitored_but_unheard, worst_finding
from steward.policy.traits import FAILED, HEALTH, PASSED, SKIPPED, Says, Shows

FIGHT = 3
"""After so many overwrites in a row, another head is taken to write the features, too."""
PEACE_S = 120.0
"""How long the features are then left to the other head."""
_OVERWRITTEN_WITHIN_S = 6 * 10.0
"""How soon after our write another feature counts as an overwrite."""
_NAMES_LENGTH = 200
"""The most characters of node names in an event."""
EVERY_S = 10.0
"""How long changes are collected, so that one command serves many nodes."""


def keep_features(draft: Draft) -> None:
    """Write the feature of each node that does not show the right one."""
    if not draft.want.health.features or not draft.may_touch_nodes or _is_left_to_another(draft):
        return
    # a node whose agent is away keeps its feature, unless it was taken out for that
    last = _last_deep_results(draft)
    wrong: defaultdict[str, set[NodeName]] = defaultdict(set)
    for node in _candidates(last, draft):
        word = _right_feature(node, last, draft)
        if word and not _shows(node, word):
            wrong[word].add(node.name)
    for word, names in sorted(wrong.items()):
        some = fold(names)
        why = Why(rule="node.feature", text=f"the checks of {len(names)} nodes: {word.lower()}", evidence=(some,))
        key = Key(f"feature:{word}")
        if draft.wish(SetFeature(key=key, why=why, nodes=frozenset(names), prefix=HEALTH, word=word), EVERY_S):
            _note_shown(word, frozenset(names), draft)


def _is_left_to_another(draft: Draft) -> bool:
    """Return whether the features are left to another head for a while."""
    until = max((one.at + PEACE_S for one in draft.head.shown.values() if one.times_undone >= FIGHT), default=draft.now)
    draft.wake(until)
    return draft.now < until


def _note_shown(word: str, names: frozenset[NodeName], draft: Draft) -> None:
    """Note what was written; if another head keeps overwriting it, say so, and pause if no agent is heard here."""
    before = draft.head.shown.get(word)
    others = _overwritten(word, names, before, draft) if before is not None else frozenset()
    undone = before.times_undone + 1 if before is not None and others else 0
    now = Shown(nodes=names, at=draft.now, times_undone=undone)
    draft.head = replace(draft.head, shown=MappingProxyType({**draft.head.shown, word: now}))
    if undone < FIGHT:
        return
    what = f"another head works on this Slurm: it takes back what this one writes on {fold(others)[:_NAMES_LENGTH]}"
    remedy = "end one of the two (a second stewardd with a state_dir of its own?)"
    if not draft.overview.heard:
        draft.paused = True
        remedy = f"this one hears no agent and pauses its actions; {remedy}, then `steward resume-actions`"
    draft.tell("head.second", f"{what}: {remedy}", once="head.second", level=Level.ERROR)


def _overwritten(word: str, names: frozenset[NodeName], before: Shown, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes on which another head overwrote the feature that this head wrote a moment ago."""
    if draft.now - before.at > _OVERWRITTEN_WITHIN_S or f"feature:{word}" in draft.seen.failures:
        return frozenset()
    later = (one.nodes for other, one in draft.head.shown.items() if other != word and one.at >= before.at)
    ours = (names & before.nodes).difference(*later)
    return frozenset(name for name in ours if any(f.startswith(HEALTH) for f in draft.seen.nodes[name].features))


def _candidates(last: Mapping[NodeName, DeepResult], draft: Draft) -> list[Node]:
    """Return the nodes that may show a wrong feature."""
    nodes, agents = draft.ground.nodes, draft.ground.agents
    failed = (name for name, result in last.items() if result is DeepResult.FAILED)
    names = set(failed).union(draft.overview.finding, monitored_but_unheard(draft), _unheard_not_skipped(draft))
    names.update(draft.cases.nodes_in_repair)
    # nodes whose connected agent has no finding, unless they show the feature that follows from its report
    for says in agents.kinds(Says):
        names |= agents.having(says) - nodes.having(Shows(says.word))
    return [draft.seen.nodes[name] for name in names if name in draft.seen.nodes]


def _unheard_not_skipped(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes without a punctual agent that do not show `Skipped`."""
    of = (draft.overview.unheard, draft.ground.nodes.stamp(Shows(SKIPPED)))
    return draft.ground.once(_find_unheard_not_skipped, of, draft)


def _find_unheard_not_skipped(draft: Draft) -> frozenset[NodeName]:
    return frozenset(draft.overview.unheard) - draft.ground.nodes.having(Shows(SKIPPED))


def _shows(node: Node, word: str) -> bool:
    """Return whether the node shows exactly this feature of ours."""
    want = HEALTH + word
    if want not in node.features or want not in node.active_features:
        return False
    return sum(feature.startswith(HEALTH) for feature in node.features) == 1


def _right_feature(node: Node, last: dict[NodeName, DeepResult], draft: Draft) -> str:
    """Return the feature that the node should show; empty to leave the node as it is."""
    if not node.is_powered or belongs_to_slot(node, draft):
        return ""
    view = draft.seen.agents.get(node.name)
    if view is None:
        return "" if node.name in draft.agents or not _is_settled(draft) else SKIPPED
    if not view.connected:
        case = draft.cases.open_of(node.name)
        return FAILED if case is not None and case.marked is not None else ""
    if worst_finding(view, draft) is not None or last.get(node.name) is DeepResult.FAILED:
        return FAILED
    return PASSED if view.passed or view.findings else SKIPPED


def _is_settled(draft: Draft) -> bool:
    """Return whether agents had time to connect since the head's start."""
    due = draft.seen.agents_since + draft.want.repair.agents_grace_s
    draft.wake(due)
    return draft.now >= due


def _last_deep_results(draft: Draft) -> dict[NodeName, DeepResult]:
    """Return the last result of a deep check for each node."""
    ended = sorted((run for run in draft.deeps.values() if not run.is_open), key=lambda run: (run.ended or 0.0, run.id))
    return {node: result for run in ended for node, result in run.results.items()}
