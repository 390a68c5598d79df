#!/usr/bin/env python3
"""An agent that says what it is told to, for tests and trials of the shim.

    fake_agent.py SOCKET ANSWERS

ANSWERS is one script for each `ask`, separated by ";" (the last one repeats); a script is a list of steps separated by
",": `wait` (say so, then sleep a second), `stop`, `requeue`, `retry`, `retry=n3+n4`, `ok`, `garbage`, `long`, `dribble`
(bytes for ever, never a line), `silent` (say nothing more, keep the connection), `sleep=SECONDS`, `run=COMMAND ...`
({job} is replaced). At its end the connection is closed. `opted` is answered by `ok` and the words of
`facts`, other lines only by `ok`. Each line received is
printed with the time and the peer's uid.
"""

import os
import select
import shlex
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

PLAIN = {"stop", "requeue", "retry", "ok", "wait"}
NOISE = {"garbage": b"\x00\xff what?\n", "long": b"steward/1 wait k=" + b"x" * 2000 + b"\n"}
_LAST_WORDS_S = 5.0


def fields(line: str) -> dict[str, str]:
    """The key=value words of a line."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def line_for(name: str, value: str) -> bytes:
    """The bytes that one step of a script sends at once."""
    if name == "retry" and value:
        return f"steward/1 retry exclude={value.replace('+', ',')}\n".encode()
    if name in PLAIN:
        return f"steward/1 {name}\n".encode()
    return NOISE.get(name, b"")


def in_turn(scripts: list[str]) -> Iterator[str]:
    """Each script once, then the last for ever."""
    yield from scripts
    while True:
        yield scripts[-1]


class FakeAgent:
    """Serves `path` from construction to `close`; `lines` has what it was told, in the order of the connections."""

    def __init__(self, path: str, answers: str) -> None:
        self._heard: dict[int, str] = {}
        self.facts = ""
        self.facts_after_s = 0.0
        self.waits = 0
        self._scripts = in_turn(answers.split(";"))
        self._closing = threading.Event()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        os.chmod(path, 0o666)
        self._server.listen(64)
        self._wake, self._waker = socket.socketpair()
        self._conversations: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving (once), with all heard that was said before: the shim waits for no answer to most lines."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._waker.close()
        self._thread.join()
        self._wake.close()
        self._server.close()
        for conversation in self._conversations:
            conversation.join(_LAST_WORDS_S)

    @property
    def lines(self) -> list[str]:
        """The line of each connection so far; each has a thread of its own, and these run in any order."""
        return [line for _, line in sorted(self._heard.copy().items())]

    def asked(self) -> list[dict[str, str]]:
        """The fields of each `ask` so far."""
        return [fields(line) for line in self.lines if line.startswith("steward/1 ask")]

    def _serve(self) -> None:
        while self._server in select.select([self._server, self._wake], [], [])[0]:
            connection, _ = self._server.accept()
            conversation = threading.Thread(
                target=self._converse, args=(connection, len(self._conversations)), daemon=True
            )
            self._conversations.append(conversation)
            conversation.start()

    def _converse(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile() as reader:
            line = reader.readline().rstrip("\n")
            _, uid, _ = struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self._heard[number] = line
            print(f"{time.time():.3f} peer={uid} {line}", flush=True)
            try:
                if line.startswith("steward/1 opted"):
                    for _ in range(self.waits):
                        connection.sendall(line_for("wait", ""))
                    self._closing.wait(self.facts_after_s)
                    connection.sendall(f"steward/1 ok{self.facts}\n".encode())
                    return
                script = next(self._scripts) if line.startswith("steward/1 ask") else "ok"
                for step in script.split(","):
                    self._play(connection, step, fields(line).get("job", "0"))
            except (BrokenPipeError, ConnectionResetError):
                print(f"{time.time():.3f} peer left", flush=True)

    def _play(self, connection: socket.socket, step: str, job: str) -> None:
        name, _, value = step.partition("=")
        if name == "run":
            subprocess.run(shlex.split(value.replace("{job}", job)), timeout=10, check=False)
        connection.sendall(line_for(name, value))
        while name == "dribble":
            connection.sendall(b"s")
            self._closing.wait(0.1)
        if name in {"wait", "sleep"}:
            self._closing.wait(float(value or 1))
        if name == "silent":
            self._closing.wait()


if __name__ == "__main__":
    if os.path.exists(sys.argv[1]):
        os.unlink(sys.argv[1])
    FakeAgent(sys.argv[1], sys.argv[2])
    threading.Event().wait()
