"""steward-verdict against agents of every kind: what it says, how long it takes, and that nothing makes it refuse."""

import os
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

PROGRAM = Path(os.environ["FAKE_SLURM"]).with_name("steward-verdict")
BAD = b"steward/1 bad severity=degraded check=disk text=/tmp%20is%20full\n"
LONGEST_S = 60.0
"""An agent says nothing for so long, and so long a program may take; its own limit is 15 ms, in this build 1 s."""


class Agent:
    """Answers one request with `answer`; None: says nothing and stays."""

    def __init__(self, path: Path, answer: bytes | None) -> None:
        self.heard = b""
        self._answer = answer
        self._done = threading.Event()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(4)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._done.set()
        self._thread.join(5)
        self._server.close()

    def _serve(self) -> None:
        self._server.settimeout(5)
        connection, _ = self._server.accept()
        with connection:
            self.heard = connection.recv(1024)
            try:
                if self._answer is None:
                    self._done.wait(2 * LONGEST_S)
                else:
                    connection.sendall(self._answer)
            except OSError:
                return


class Verdicts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "agent-n7.sock"

    def ask(self, answer: bytes | None, *options: str) -> tuple[int, str]:
        """Exit status and output with an agent that answers so."""
        agent = Agent(self.path, answer)
        try:
            return self.run_it(f"--socket={self.path}", *options)
        finally:
            agent.close()
            assert agent.heard == b"steward/1 verdict\n"

    def run_it(self, *options: str, **env: str) -> tuple[int, str]:
        done = subprocess.run(
            [str(PROGRAM), *options], capture_output=True, text=True, timeout=LONGEST_S, env=os.environ | env
        )
        assert "Sanitizer" not in done.stderr
        return done.returncode, done.stdout.strip()

    def test_a_sound_node_is_fine(self) -> None:
        assert self.ask(b"steward/1 fine\n", "--refuse=suspect") == (0, "fine")

    def test_a_bad_verdict_is_told_and_refuses_nothing_unless_asked_to(self) -> None:
        assert self.ask(BAD) == (0, "bad degraded disk /tmp is full")

    def test_it_refuses_from_the_severity_on_that_it_was_told(self) -> None:
        for refuse, status in (("suspect", 1), ("degraded", 1), ("fatal", 0)):
            with self.subTest(refuse=refuse):
                assert self.ask(BAD, f"--refuse={refuse}")[0] == status
                self.path.unlink()

    @unittest.skipIf(os.getuid() != 0, "it is root's own")
    def test_root_goes_in_by_an_entrance_of_its_own_where_users_fill_the_queue(self) -> None:
        with socket.socket(socket.AF_UNIX) as common, socket.socket(socket.AF_UNIX) as first:
            common.bind(str(self.path))
            common.listen(0)
            first.connect(str(self.path))
            common_path, self.path = self.path, self.path.with_name(f"{self.path.name}.root")
            agent = Agent(self.path, BAD)
            assert self.run_it(f"--socket={common_path}") == (0, "bad degraded disk /tmp is full")
            agent.close()
        assert agent.heard == b"steward/1 verdict\n"

    def test_garbage_never_refuses(self) -> None:
        lines = [
            b"",
            b"\n",
            b"\0\n",
            b"fine\n",
            b"x" * 5000,
            b"steward/1 bad\n",
            b"steward/1 requeue\n",
            BAD[:-1],
            BAD[9:],
        ]
        for line in lines:
            with self.subTest(line=line[:20]):
                status, said = self.ask(line, "--refuse=suspect")
                assert (status, said[:8]) == (0, "unknown:")
                self.path.unlink()

    def test_an_agent_that_does_not_answer_holds_nobody_up(self) -> None:
        assert self.ask(None, "--refuse=suspect") == (0, "unknown: the agent did not answer in time")

    def test_without_an_agent_nothing_is_refused(self) -> None:
        assert self.run_it(f"--socket={self.path}", "--refuse=suspect") == (0, "unknown: no agent there")
        self.path.write_text("not a socket")
        assert self.run_it(f"--socket={self.path}", "--refuse=suspect") == (0, "unknown: no agent there")

    def test_the_nodes_name_stands_in_the_socket(self) -> None:
        agent = Agent(self.path, b"steward/1 fine\n")
        told = self.run_it(f"--socket={self.path.parent}/agent-%n.sock", SLURMD_NODENAME="n7")
        agent.close()
        assert told == (0, "fine")

    def test_what_it_does_not_understand_it_says(self) -> None:
        for options in (["--refuse=all"], ["--socket=relative"], ["word"], ["--what"], ["--socket=/" + "x" * 200]):
            with self.subTest(options=options):
                assert self.run_it(*options)[0] == 2


if __name__ == "__main__":
    unittest.main()
