"""Shares of a limited list, so that no user's entries hide another's."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice, zip_longest
from typing import TypeVar

K = TypeVar("K")


def fair_share(users: Mapping[K, int], most: int) -> frozenset[K]:
    """Return at most `most` of the keys, taken from their users in turn, of each user the last ones first."""
    of_user: defaultdict[int, list[K]] = defaultdict(list)
    for key, uid in users.items():
        of_user[uid].append(key)
    in_turn = zip_longest(*(reversed(its) for its in of_user.values()))
    return frozenset(islice((key for turn in in_turn for key in turn if key is not None), most))
