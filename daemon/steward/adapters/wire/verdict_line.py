"""The line that asks an agent what it knows of its node already, and its answers (docs/hooks.md)."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from steward.model.health import Severity

ASKED = b"steward/1 verdict\n"
FINE = b"steward/1 fine\n"
UNKNOWN = b"steward/1 unknown\n"
MAX_ANSWER = 1024
_TEXT = 300
_BAD = re.compile(r"steward/1 bad severity=(?P<severity>[a-z]+) check=(?P<check>[!-~]+) text=(?P<text>[!-~]*)\n")
_SEVERITIES = frozenset(one.value for one in Severity)
_PLAIN = re.compile(r"[^!-$&-~]")
"""What is not printable ASCII, a space or a percent sign is written as %XX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """A hook of Slurm asks for the node's verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """What an agent answered where something is wrong with its node."""

    severity: Severity
    check: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fine:
    """The node's checks passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing is known of the node, and `why`."""

    why: str


Verdict = Bad | Fine | Unknown


def verdict_of(line: bytes) -> Verdict:
    """What `line` says, read with its LF. What no agent says is Unknown."""
    if line == FINE:
        return Fine()
    if line == UNKNOWN:
        return Unknown(why="the agent knows nothing yet")
    found = _BAD.fullmatch(line.decode("ascii", "replace"))
    if found is None or found["severity"] not in _SEVERITIES:
        return Unknown(why="the agent's answer is malformed")
    return Bad(severity=Severity(found["severity"]), check=unquote(found["check"]), text=unquote(found["text"]))


def bad_line(severity: Severity, check: str, text: str) -> bytes:
    """The answer where something is wrong; `text` is foreign, and cut."""
    clean = "".join(c if " " <= c <= "~" else "?" for c in text[:_TEXT])
    words = f"severity={severity.value} check={_plain(check)} text={_plain(clean)}"
    return f"steward/1 bad {words}\n".encode("ascii")


def _plain(text: str) -> str:
    return _PLAIN.sub(lambda match: f"%{ord(match[0]):02X}", text)
