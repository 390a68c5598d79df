"""Options of sbatch that a replica job must not have from its base: as they were typed, and in the script's own lines.

Where the base began, when it was to begin, and who is told of it are about the base alone.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

_WITH_VALUE: Mapping[str, str] = {
    "wrap": "wr",
    "nodelist": "nodel",
    "nodefile": "nodef",
    "begin": "be",
    "mail-type": "mail-t",
    "time-min": "time-",
}
"""An option's name, and how short getopt lets it be."""
_ALONE: Mapping[str, str] = {"wait": "wait", "test-only": "te", "parsable": "pars", "hold": "hold"}
_LETTERS, _LETTERS_ALONE = ("w", "F", "b"), ("W", "H")
_LINE = re.compile(rb"#SBATCH\s+(.*)")


def for_replica(words: Sequence[str]) -> list[str]:
    """Without the options that are not for it, and without their values."""
    return list(_kept(iter(words)))


def script_for_replica(script: bytes) -> bytes:
    """The same script, whose `#SBATCH` lines have lost them. A line that is not understood stays as it is."""
    lines = script.split(b"\n")
    for number, line in enumerate(lines):
        if number and line.strip() and not line.startswith(b"#"):
            break  # sbatch reads no further
        if (found := _LINE.match(line)) is not None:
            lines[number] = _line_for_replica(line, found[1])
    return b"\n".join(lines)


def _line_for_replica(line: bytes, said: bytes) -> bytes:
    try:
        words = shlex.split(said.decode("utf-8", "surrogateescape"), comments=True)
    except ValueError:
        return line
    kept = for_replica(words)
    if kept == words:
        return line
    text = f"#SBATCH {shlex.join(kept)}" if kept else "#"
    return text.encode("utf-8", "surrogateescape")


def _kept(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        name, equals, _ = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            if _is(name, _WITH_VALUE):
                if not equals:
                    next(words, "")
            elif not _is(name, _ALONE):
                yield word
        elif word[:1] == "-" and word[1:2] in _LETTERS:
            if len(word) == 2:
                next(words, "")
        elif not (word[:1] == "-" and len(word) == 2 and word[1] in _LETTERS_ALONE):
            yield word


def _is(name: str, options: Mapping[str, str]) -> bool:
    return any(option.startswith(name) and name.startswith(least) for option, least in options.items())
