"""The line that asks an agent for its present verdict on its node, and the answers (docs/hooks.md)."""

import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from steward.model.health import Severity

ASKED = b"steward/1 verdict\n"
FINE = b"steward/1 fine\n"
UNKNOWN = b"steward/1 unknown\n"
MAX_ANSWER = 1024
_MAX_TEXT = 300
_BAD = re.compile(r"steward/1 bad severity=(?P<severity>[a-z]+) check=(?P<check>[!-~]+) text=(?P<text>[!-~]*)\n")
_SEVERITIES = frozenset(one.value for one in Severity)
_TO_ENCODE = re.compile(r"[^!-$&-~]")
"""The characters that are written as %XX: space, percent sign and all that is not printable ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """The request of a hook of Slurm for the node's verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """The answer of an agent whose node has a fault."""

    severity: Severity
    check: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fine:
    """The answer that the node's checks passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The answer that the node's health is not known, and `why`."""

    why: str


Verdict = Bad | Fine | Unknown


def verdict_of(line: bytes) -> Verdict:
    """Return the verdict in an agent's `line`, which ends with LF; Unknown for a line that no agent writes."""
    if line == FINE:
        return Fine()
    if line == UNKNOWN:
        return Unknown(why="the agent knows nothing yet")
    found = _BAD.fullmatch(line.decode("ascii", "replace"))
    if found is None or found["severity"] not in _SEVERITIES:
        return Unknown(why="the agent's answer is malformed")
    return Bad(severity=Severity(found["severity"]), check=unquote(found["check"]), text=unquote(found["text"]))


def bad_line(severity: Severity, check: str, text: str) -> bytes:
    """Return the answer line of a node with a fault; `text` is untrusted, and cut."""
    clean = "".join(c if " " <= c <= "~" else "?" for c in text[:_MAX_TEXT])
    words = f"severity={severity.value} check={_encoded(check)} text={_encoded(clean)}"
    return f"steward/1 bad {words}\n".encode("ascii")


def _encoded(text: str) -> str:
    return _TO_ENCODE.sub(lambda match: f"%{ord(match[0]):02X}", text)


# The question to the agent of this node, from another process.

LIMIT_S = 2.0
"""The time limit of the question. The agent answers from memory, in milliseconds, but a machine on which a job just
died is busy (core files, many processes that end), and ft_launcher waits 60 s. An agent that takes longer is frozen,
or its machine is."""


def ask_verdict(agent: Path, *, limit_s: float = LIMIT_S) -> Verdict:
    """Return the verdict of the agent at `agent` within `limit_s` seconds. Never raises: Unknown says why."""
    end = time.monotonic() + limit_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(limit_s)
            sock.connect(str(agent))
            sock.sendall(ASKED)
            return verdict_of(_line(sock, end))
    except TimeoutError:
        return Unknown(why="the agent did not answer in time")
    except OSError as error:
        return Unknown(why=f"no agent answers at {agent}: {error.strerror or error}")


def _line(sock: socket.socket, end: float) -> bytes:
    """Read one line, or as much of it as comes before the other side closes. Raises TimeoutError."""
    line = b""
    while not line.endswith(b"\n") and len(line) <= MAX_ANSWER:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        piece = sock.recv(MAX_ANSWER)
        if not piece:
            break
        line += piece
    return line
