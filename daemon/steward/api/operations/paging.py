"""Split lists into pages. A page's token holds the key of its last item: later additions and removals shift nothing.

The token is not secret and grants nothing. A digest binds it to the operation and its filters, so that a client's
mistake is answered with an error instead of the wrong page.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from steward.api.json11.errors import invalid

T = TypeVar("T")
Key = tuple[float | str, ...]
"""The sort key of an item in its list: unique, and of the same types for all items."""

_DEFAULT = 100
_OWN = frozenset({"MaxResults", "NextToken"})
_FORGED = "NextToken is not one that this call, with these filters, has given: begin without it."


def page(
    items: Iterable[tuple[Key, T]], members: Mapping[str, Any], *, scope: str, descending: bool = False
) -> tuple[list[T], str | None]:
    """Return the items of the requested page, and the token of the next one; no token (None) after the last page.

    `members` is the request. SortOrder (by default as `descending` says), MaxResults and NextToken have their meaning
    here; all other members are filters.
    """
    order = members.get("SortOrder")
    backwards = descending if order is None else order == "Descending"
    ordered = sorted(items, key=lambda item: item[0], reverse=backwards)
    digest = _digest(scope, members)
    if token := members.get("NextToken"):
        ordered = _behind(ordered, _read(token, digest), backwards)
    limit = members.get("MaxResults", _DEFAULT)
    shown = ordered[:limit]
    is_last = len(ordered) <= limit or not shown
    return [item for _, item in shown], None if is_last else _token(digest, shown[-1][0])


def is_in_time_filter(at: float, members: Mapping[str, Any], after: str, before: str) -> bool:
    """Return whether `at` passes a list's time filters, whose members are named `after` and `before`."""
    earliest: float = members.get(after, float("-inf"))
    latest: float = members.get(before, float("inf"))
    return earliest <= at <= latest


def _behind(ordered: list[tuple[Key, T]], mark: Key, backwards: bool) -> list[tuple[Key, T]]:
    try:
        return [item for item in ordered if (item[0] < mark if backwards else item[0] > mark)]
    except TypeError as error:
        raise invalid(_FORGED) from error


def _digest(scope: str, members: Mapping[str, Any]) -> str:
    filters = {name: value for name, value in members.items() if name not in _OWN}
    text = json.dumps([scope, filters], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _token(digest: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([digest, *key], separators=(",", ":")).encode()).decode()


def _read(token: str, digest: str) -> Key:
    try:
        given, *key = json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid(_FORGED) from error
    if given != digest:
        raise invalid(_FORGED)
    return tuple(key)
