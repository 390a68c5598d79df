"""A feature that users may choose nodes by: one feature of ours on each node says how its checks stand
(`HealthCheck:Passed`).

Slurm goes back to the features of slurm.conf whenever it reads that file, so what is shown is compared with every
picture, and written only where it differs.
"""

from collections import defaultdict
from collections.abc import Mapping

from steward.model.action import SetFeature
from steward.model.deep import DeepResult
from steward.model.ids import Key, NodeName
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.serving import is_between
from steward.policy.node.verdict import missable, worst
from steward.policy.traits import FAILED, HEALTH, PASSED, SKIPPED, Says, Shows

EVERY_S = 10.0
"""Changes are collected for so long: one command for many nodes."""


def keep_features(draft: Draft) -> None:
    """Write the feature of each node that does not show it. A node whose agent is away keeps its own, unless it was
    taken out for that."""
    if not draft.want.health.features or not draft.may_touch_nodes:
        return
    last = _last_deep_results(draft)
    wrong: defaultdict[str, set[NodeName]] = defaultdict(set)
    for node in _doubtful(last, draft):
        word = _word(node, last, draft)
        if word and not _shows(node, word):
            wrong[word].add(node.name)
    for word, names in sorted(wrong.items()):
        some = fold(names)
        why = Why(rule="node.feature", text=f"the checks of {len(names)} nodes: {word.lower()}", evidence=(some,))
        key = Key(f"feature:{word}")
        draft.wish(SetFeature(key=key, why=why, nodes=frozenset(names), prefix=HEALTH, word=word), EVERY_S)


def _doubtful(last: Mapping[NodeName, DeepResult], draft: Draft) -> list[Node]:
    """Nodes that may show something else than they should: all but those that show what their agents say without any
    finding."""
    nodes, agents = draft.ground.nodes, draft.ground.agents
    failed = (name for name, result in last.items() if result is DeepResult.FAILED)
    names = set(failed).union(draft.overview.finding, missable(draft), _not_skipped(draft))
    names.update(draft.cases.nodes_in_repair)
    for says in agents.kinds(Says):
        names |= agents.having(says) - nodes.having(Shows(says.word))
    return [draft.seen.nodes[name] for name in names if name in draft.seen.nodes]


def _not_skipped(draft: Draft) -> frozenset[NodeName]:
    """Nodes without an agent in time that do not show that: of one that was never heard nothing else is to be shown."""
    unheard, nodes = draft.overview.unheard, draft.ground.nodes
    shows = Shows(SKIPPED)
    of = (unheard, nodes.stamp(shows))
    return draft.ground.once("not skipped", of, lambda: frozenset(unheard) - nodes.having(shows))


def _shows(node: Node, word: str) -> bool:
    want = HEALTH + word
    if want not in node.features or want not in node.active_features:
        return False
    return sum(feature.startswith(HEALTH) for feature in node.features) == 1


def _word(node: Node, last: dict[NodeName, DeepResult], draft: Draft) -> str:
    """Empty: nothing can be said now."""
    if not node.is_powered or is_between(node, draft):
        return ""
    view = draft.seen.agents.get(node.name)
    if view is None:
        return "" if node.name in draft.agents or not _is_settled(draft) else SKIPPED
    if not view.connected:
        case = draft.cases.open_of(node.name)
        return FAILED if case is not None and case.marked is not None else ""
    if worst(view, draft) is not None or last.get(node.name) is DeepResult.FAILED:
        return FAILED
    return PASSED if view.passed or view.findings else SKIPPED


def _is_settled(draft: Draft) -> bool:
    """Agents had time to connect."""
    due = draft.seen.agents_since + draft.want.repair.agents_grace_s
    draft.wake(due)
    return draft.now >= due


def _last_deep_results(draft: Draft) -> dict[NodeName, DeepResult]:
    ended = sorted((run for run in draft.deeps.values() if not run.is_open), key=lambda run: (run.ended or 0.0, run.id))
    return {node: result for run in ended for node, result in run.results.items()}
