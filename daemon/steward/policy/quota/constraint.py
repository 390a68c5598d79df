"""The nodes that a job may use, by its required nodes, features and types of GRES."""

import re
from collections.abc import Collection, Iterable, Mapping

from steward.model.gres import gpus_of
from steward.model.ids import NodeName
from steward.model.job import Job, parse_tres
from steward.model.node import Node

_TYPED = "gres/gpu:"
_WORD = re.compile(r"[&|()]|[^&|()]+")


def eligible_nodes(job: Job, nodes: Iterable[NodeName], known: Mapping[NodeName, Node], count: int) -> list[NodeName]:
    """Return the nodes of `nodes` that the job may use if its typed GRES are spread over `count` nodes."""
    typed = {name.removeprefix(_TYPED): n for name, n in parse_tres(job.requested).items() if name.startswith(_TYPED)}
    found = []
    for name in nodes:
        node = known[name]
        if job.features and not satisfies(job.features, node.features):
            continue
        has = {each.type: each.amount for each in gpus_of(node.gres)} if typed else {}
        if all(
            has.get(word, 0) >= -(-amount // count) or (job.is_total and has.get(word))
            for word, amount in typed.items()
        ):
            found.append(name)
    return found


def satisfies(constraint: str, features: Collection[str]) -> bool:
    """Return whether a node with these features fits a job with this `--constraint`."""
    # in brackets and with counts (`[a|b]`, `a*2&b*3`) each node needs only one of the features
    if "[" in constraint or "*" in constraint:
        return any(word.partition("*")[0] in features for word in re.split(r"[\[\]&|()]+", constraint) if word)
    words = [word.strip() for word in _WORD.findall(constraint) if word.strip()]
    return _value(words, features)


def _value(words: list[str], features: Collection[str]) -> bool:
    """Return whether the features satisfy the words up to the next closing bracket, and remove these words."""
    # from left to right, as Slurm reads a constraint: `&` and `|` have the same precedence
    found, operator = True, "&"
    while words:
        word = words.pop(0)
        if word == ")":
            break
        if word in ("&", "|"):
            operator = word
            continue
        value = _value(words, features) if word == "(" else word in features
        found = (found and value) if operator == "&" else (found or value)
    return found
