"""The line that asks an agent what it knows of its node already, and its answers (docs/hooks.md)."""

import re
from dataclasses import dataclass

from steward.model.health import Severity

FINE = b"steward/1 fine\n"
UNKNOWN = b"steward/1 unknown\n"
_TEXT = 300
_PLAIN = re.compile(r"[^!-$&-~]")
"""What is not printable ASCII, a space or a percent sign is written as %XX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """A hook of Slurm asks for the node's verdict."""


def bad_line(severity: Severity, check: str, text: str) -> bytes:
    """The answer where something is wrong; `text` is foreign, and cut."""
    clean = "".join(c if " " <= c <= "~" else "?" for c in text[:_TEXT])
    words = f"severity={severity.value} check={_plain(check)} text={_plain(clean)}"
    return f"steward/1 bad {words}\n".encode("ascii")


def _plain(text: str) -> str:
    return _PLAIN.sub(lambda match: f"%{ord(match[0]):02X}", text)
