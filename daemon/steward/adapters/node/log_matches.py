"""The lines of a user's files that match patterns of his, found in a child process as he (`user_look.py`).

A pattern can take for ever, or all memory: the child has limits of its own, and the agent has none of it. Standard
library only.
"""

import json
import os
import re
import resource
import stat
import sys
from typing import Any

_MOST_BYTES, _MOST_LINE = 1 << 20, 4096
_MOST_NUMBERS = 100
_MOST_MEMORY, _MOST_CPU_S = 512 << 20, 3
"""What the patterns of a user may take."""
_LINE_ENDS = re.compile(rb"[\r\n]+")


def matches(request: dict[str, Any]) -> dict[str, Any]:
    """Return how many new lines of each file match each pattern, the numbers that they caught, and the files' ends.

    `bad` says why a pattern cannot be used. A file is read from `at` on, one of another inode from its beginning, and
    one without `at` from its present end on. Of a file that is none, or cannot be read, nothing is returned.
    """
    patterns: list[re.Pattern[str] | None] = []
    bad: dict[int, str] = {}
    for index, text in enumerate(request["patterns"]):
        try:
            patterns.append(re.compile(text))
        except (re.error, RecursionError, OverflowError) as error:
            patterns.append(None)
            bad[index] = str(error)
    return {"bad": bad, "files": [_matches_in(patterns, **file) for file in request["files"]]}


def _matches_in(patterns: list[re.Pattern[str] | None], path: str, inode: int, at: int | None) -> dict[str, Any] | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode):
            return None
        begin = seen.st_size if at is None else at if seen.st_ino == inode and seen.st_size >= at else 0
        begin = max(begin, seen.st_size - _MOST_BYTES)
        new = os.pread(file, seen.st_size - begin, begin)
    finally:
        os.close(file)
    whole = max(new.rfind(b"\n"), new.rfind(b"\r")) + 1
    if len(new) - whole > _MOST_LINE:
        whole = len(new)
    lines = [line[:_MOST_LINE].decode("utf-8", "replace") for line in _LINE_ENDS.split(new[:whole]) if line]
    hits = [[0, []] if pattern is None else _hits(pattern, lines) for pattern in patterns]
    return {"inode": seen.st_ino, "at": begin + whole, "hits": hits}


def _hits(pattern: re.Pattern[str], lines: list[str]) -> list[Any]:
    """Return how many lines match, and the last numbers that the pattern's first group caught."""
    found = [hit for line in lines if (hit := pattern.search(line)) is not None]
    numbers = [number for hit in found if pattern.groups and (number := _number(hit[1])) is not None]
    return [len(found), numbers[-_MOST_NUMBERS:]]


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number - number == 0.0 else None


def answer() -> bytes:
    """Return the answer to the request on stdin, within what patterns of a user may take."""
    for what, most in ((resource.RLIMIT_AS, _MOST_MEMORY), (resource.RLIMIT_CPU, _MOST_CPU_S)):
        resource.setrlimit(what, (most, most))
    return json.dumps(matches(json.load(sys.stdin))).encode()
