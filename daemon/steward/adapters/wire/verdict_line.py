"""The line that asks an agent what it knows of its node already, and its answers (docs/hooks.md)."""

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
_TEXT = 300
_BAD = re.compile(r"steward/1 bad severity=(?P<severity>[a-z]+) check=(?P<check>[!-~]+) text=(?P<text>[!-~]*)\n")
_SEVERITIES = frozenset(one.value for one in Severity)
_PLAIN = re.compile(r"[^!-$&-~]")
"""Characters that are written as %XX: all but printable ASCII, and a space and a percent sign, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """A hook of Slurm asks for the node's verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """The answer of an agent whose node is not sound."""

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
    """Read an agent's `line`, with its LF. A line that no agent writes is Unknown."""
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


# Asks the agent of this node what it knows of the node already, from another process.

LIMIT_S = 2.0
"""The agent answers from memory, in milliseconds, but a machine on which a job just died is busy (core files, many
processes that end), and ft_launcher waits 60 s. An agent that takes longer than this is frozen, or the machine is."""


def ask_verdict(agent: Path, *, limit_s: float = LIMIT_S) -> Verdict:
    """The answer of the agent that listens at `agent`, within `limit_s` seconds. Never raises: Unknown says why."""
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
