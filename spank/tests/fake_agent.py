#!/usr/bin/env python3
"""An agent that says what it is told to, for trials of the shim.

    fake_agent.py SOCKET ANSWERS

ANSWERS is one script for each `ask`, separated by ";" (the last one repeats); a script is a list of steps separated by
",": `wait` (say so, then sleep a second), `stop`, `requeue`, `retry`, `retry=NODES`, `ok`, `garbage`, `long`, `close`,
`silent` (say nothing more, keep the connection), `sleep=SECONDS`, `run=COMMAND ...` ({job} is replaced, not waited for
longer than 10 s). `opted` is always answered by `ok`. Each line received is printed with the time and the peer's uid.
"""

import os
import shlex
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

PLAIN = {"stop", "requeue", "retry", "ok"}


def fields(line: str) -> dict[str, str]:
    """The key=value words of a line."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def line_for(step: str) -> bytes:
    """The bytes that one step of a script sends at once."""
    name, _, value = step.partition("=")
    if name == "retry" and value:
        return f"steward/1 retry exclude={value}\n".encode()
    if name in PLAIN or name == "wait":
        return f"steward/1 {name}\n".encode()
    return {"garbage": b"\x00\xff what?\n", "long": b"steward/1 wait " + b"x" * 2000 + b"\n"}.get(name, b"")


def play(connection: socket.socket, script: str, job: str) -> None:
    """Send a whole script over a connection."""
    for step in script.split(","):
        name, _, value = step.partition("=")
        if name == "run":
            subprocess.run(shlex.split(value.replace("{job}", job)), timeout=10, check=False)
        connection.sendall(line_for(step))
        if name in {"wait", "sleep"}:
            time.sleep(float(value or 1))
        if name == "silent":
            connection.recv(1)


def converse(connection: socket.socket, scripts: Iterator[str]) -> None:
    """Answer one connection's one request."""
    with connection:
        line = connection.makefile().readline().rstrip("\n")
        _, uid, _ = struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        print(f"{time.time():.3f} peer={uid} {line}", flush=True)
        try:
            if line.startswith("steward/1 opted"):
                connection.sendall(b"steward/1 ok\n")
            else:
                play(connection, next(scripts), fields(line).get("job", "0"))
        except (BrokenPipeError, ConnectionResetError):
            print(f"{time.time():.3f} left", flush=True)


def in_turn(scripts: list[str]) -> Iterator[str]:
    """Each script once, then the last for ever."""
    yield from scripts
    while True:
        yield scripts[-1]


def main(path: str, answers: str) -> None:
    """Serve until killed."""
    if os.path.exists(path):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o666)
    server.listen(64)
    scripts = in_turn(answers.split(";"))
    while True:
        connection, _ = server.accept()
        threading.Thread(target=converse, args=(connection, scripts), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
