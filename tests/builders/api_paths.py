"""The paths of the HTTP API, of its table of routes."""

from collections.abc import Mapping

from steward.api.routes import ROUTES

OF_A_CLUSTER = {"{job}": "7", "{name}": "n2"}
"""Words for a path of which there is something in `a_cluster()`; all others are `x`."""


def reads(words: Mapping[str, str] = OF_A_CLUSTER) -> tuple[str, ...]:
    """The path of each page, with these words in place of its parameters."""
    return tuple(_filled(one.path, words) for one in ROUTES if one.method == "GET")


def changes() -> tuple[str, ...]:
    return tuple(one.path for one in ROUTES if one.method == "POST")


def _filled(path: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        path = path.replace(name, word)
    return "/".join("x" if part.startswith("{") else part for part in path.split("/"))
