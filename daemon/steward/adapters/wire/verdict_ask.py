"""Asks the agent of this node what it knows of the node already, from another process."""

import socket
import time
from pathlib import Path

from steward.adapters.wire.verdict_line import ASKED, MAX_ANSWER, Unknown, Verdict, verdict_of

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
    """As much of one line as comes. Raises TimeoutError."""
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
