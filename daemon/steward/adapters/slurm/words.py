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
    """Slurm could have given a node this name."""
    return _NODE.fullmatch(name) is not None


def node_list(names: Iterable[NodeName]) -> str:
    """`n[1-3,7]`, sorted. Raises Permanent for a name that Slurm would not have given a node, and for more names than
    one argument can have."""
    known = set(names)
    if len(lists := node_lists(known)) > 1:
        raise Permanent(f"the list of {len(known)} nodes is too long for a command: their names cannot be folded")
    return lists[0] if lists else ""


def node_lists(names: Iterable[NodeName]) -> list[str]:
    """The nodes as Slurm's lists, for writes that may be made in parts: as many lists as are needed for each to fit
    into one argument."""
    known = sorted(set(names))
    wrong = [name for name in known if not _NODE.fullmatch(name)]
    if wrong:
        raise Permanent(f"not a node name: {printable(wrong[0], 80)!r}")
    return _lists(known)


def _lists(known: list[NodeName]) -> list[str]:
    text = fold(known)
    if len(text) <= _LONGEST:
        return [text] if text else []
    half = len(known) // 2
    return [*_lists(known[:half]), *_lists(known[half:])]


_NO_NODES: frozenset[NodeName] = frozenset()
"""One for all: Python makes a new empty set each time, of 216 bytes."""


def expand(text: str) -> frozenset[NodeName]:
    """Every name in Slurm's node list (`n[1-3],m7`; empty and `(null)` are none). Raises Retryable when unreadable."""
    if text in ("", "(null)", "None"):
        return _NO_NODES
    if _NODE.fullmatch(text):
        return frozenset({NodeName(text)})
    try:
        names = frozenset(map(NodeName, unfold(text)))
    except ValueError as error:
        why = printable(str(error), 120)
        raise Retryable(f"cannot read the node list {printable(text, 120)!r}: {why}") from error
    if not all(_NODE.fullmatch(name) for name in names):
        raise Retryable(f"cannot read the node list {printable(text, 120)!r}")
    return names


def expand_users(text: str) -> frozenset[NodeName]:
    """The names in a list that a job's user typed. What is no list is none: it costs that field of that job."""
    try:
        return expand(text)
    except Retryable as error:
        log.warning("a job's list of excluded nodes is left out: %s", error)
        return _NO_NODES


def first_words(line: str) -> dict[str, str]:
    """`Key=value` words of a line of scontrol. What a later free text (a comment) repeats is not believed."""
    words: dict[str, str] = {}
    for word in line.split():
        key, _, value = word.partition("=")
        words.setdefault(key, value)
    return words


def settings_in(answer: str) -> dict[str, str]:
    """Setting -> value, of `scontrol show config`."""
    pairs = (line.partition("=") for line in answer.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def words_of(value: str) -> frozenset[str]:
    """A comma list of a setting, in lower case; `(null)` and `none` are empty."""
    found = {word.strip().lower() for word in value.split(",")}
    return frozenset(found - {"", "(null)", "none"})


def reason(text: str) -> str:
    """A reason that is one argument of one line: printable ASCII without quotes, at most 200 characters."""
    return printable(text, _REASON_LIMIT).translate(str.maketrans("'\"`\\", "    ")).strip()


def partition(name: str) -> str:
    """Raises Permanent for a name that Slurm would not have given a partition."""
    if not _PARTITION.fullmatch(name):
        raise Permanent(f"not a partition name: {printable(name, 80)!r}")
    return name


def signal(name: str) -> str:
    """`USR1`. Raises Permanent for anything else than a signal's name."""
    if not _SIGNAL.fullmatch(name):
        raise Permanent(f"not a signal: {printable(name, 40)!r}")
    return name
