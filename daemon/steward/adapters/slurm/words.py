"""Words that go into a Slurm command: checked here, so that no text can become another argument or another key."""

import logging
import re
from collections.abc import Iterable

from steward.model.ids import NodeName
from steward.model.node_names import fold, unfold
from steward.model.text import printable
from steward.ports import Permanent, Retryable

log = logging.getLogger(__name__)

_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_PARTITION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,1023}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}")
_REASON_LIMIT = 200
_LONGEST = 120_000
"""The longest list for one argument, in bytes: Linux takes 128 KiB."""


def is_node(name: str) -> bool:
    """Return whether Slurm could have given a node this name."""
    return _NODE.fullmatch(name) is not None


def node_list(names: Iterable[NodeName]) -> str:
    """Return the nodes as `n[1-3,7]`, sorted. Raises Permanent for a bad name, or too many for one argument."""
    known = set(names)
    if len(lists := node_lists(known)) > 1:
        raise Permanent(f"the list of {len(known)} nodes is too long for a command: their names cannot be folded")
    return lists[0] if lists else ""


def node_lists(names: Iterable[NodeName]) -> list[str]:
    """Return the nodes in as few of Slurm's lists as fit into one argument each, for writes in parts."""
    known = sorted(set(names))
    wrong = [name for name in known if not _NODE.fullmatch(name)]
    if wrong:
        raise Permanent(f"not a node name: '{printable(wrong[0], 80)}'")
    return _lists(known)


def _lists(known: list[NodeName]) -> list[str]:
    """Return the sorted nodes in lists that are short enough."""
    text = fold(known)
    if len(text) <= _LONGEST:
        return [text] if text else []
    half = len(known) // 2
    return [*_lists(known[:half]), *_lists(known[half:])]


_NO_NODES: frozenset[NodeName] = frozenset()
"""One empty set for all jobs and nodes: each new one would take 216 bytes."""


def expand(text: str) -> frozenset[NodeName]:
    """Return every name in Slurm's node list (`n[1-3],m7`; empty and `(null)` are none).

    Raises Retryable for a malformed list.
    """
    if text in ("", "(null)", "None"):
        return _NO_NODES
    if _NODE.fullmatch(text):
        return frozenset({NodeName(text)})
    try:
        names = frozenset(map(NodeName, unfold(text)))
    except ValueError as error:
        why = printable(str(error), 120)
        raise Retryable(f"cannot read the node list '{printable(text, 120)}': {why}") from error
    if not all(_NODE.fullmatch(name) for name in names):
        raise Retryable(f"cannot read the node list '{printable(text, 120)}'")
    return names


def expand_users(text: str) -> frozenset[NodeName]:
    """Return the names in a list that a job's user typed; a bad list is empty, which costs only this field."""
    try:
        return expand(text)
    except Retryable as error:
        log.warning("a job's list of excluded nodes is left out: %s", error)
        return _NO_NODES


def first_words(line: str) -> dict[str, str]:
    """Return the `Key=value` words of a line of scontrol; a repetition in a later free text does not count."""
    words: dict[str, str] = {}
    for word in line.split():
        key, _, value = word.partition("=")
        words.setdefault(key, value)
    return words


def settings_in(answer: str) -> dict[str, str]:
    """Return each setting with its value, from `scontrol show config`."""
    pairs = (line.partition("=") for line in answer.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def words_of(value: str) -> frozenset[str]:
    """Return the words of a setting's comma list, in lower case; `(null)` and `none` are empty."""
    found = {word.strip().lower() for word in value.split(",")}
    return frozenset(found - {"", "(null)", "none"})


def reason(text: str) -> str:
    """Return a reason as one argument of one line: printable ASCII without quotes, at most 200 characters."""
    return printable(text, _REASON_LIMIT).translate(str.maketrans("'\"`\\", "    ")).strip()


def partition(name: str) -> str:
    """Return the name. Raises Permanent for one that Slurm would not have given a partition."""
    if not _PARTITION.fullmatch(name):
        raise Permanent(f"not a partition name: '{printable(name, 80)}'")
    return name


def signal(name: str) -> str:
    """Return the signal's name, such as `USR1`. Raises Permanent for anything else."""
    if not _SIGNAL.fullmatch(name):
        raise Permanent(f"not a signal: '{printable(name, 40)}'")
    return name
