"""Asking the agent from another process: an answer in time, or nothing is known."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steward.adapters.wire.verdict_line import ASKED, Fine, Unknown, ask_verdict
from tests.fakes.until import FACT_S


@contextmanager
def agent(path: Path, *pieces: bytes, hang: bool = False) -> Iterator[None]:
    """Answers one question with `pieces`, one after the other, and then hangs up (or does not)."""
    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()

        def serve() -> None:
            with door.accept()[0] as peer:
                assert peer.recv(100) == ASKED
                for piece in pieces:
                    peer.sendall(piece)
                    time.sleep(0.01)
                if hang:
                    done.wait(FACT_S)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def test_the_agents_answer_comes_back_also_in_pieces(tmp_path: Path) -> None:
    with agent(tmp_path / "s", b"steward/1 ", b"fine\n", hang=True):
        assert ask_verdict(tmp_path / "s", limit_s=FACT_S) == Fine()


def test_an_agent_that_hangs_up_without_an_answer_has_said_nothing(tmp_path: Path) -> None:
    with agent(tmp_path / "s"):
        assert ask_verdict(tmp_path / "s", limit_s=FACT_S) == Unknown(why="the agent's answer is malformed")


def test_an_agent_that_does_not_answer_in_time_is_not_waited_for(tmp_path: Path) -> None:
    with agent(tmp_path / "s", b"steward/1 ", hang=True):
        assert ask_verdict(tmp_path / "s", limit_s=0.05) == Unknown(why="the agent did not answer in time")


def test_an_endless_answer_is_not_read_to_its_end(tmp_path: Path) -> None:
    with agent(tmp_path / "s", b"x" * 4096, hang=True):
        assert ask_verdict(tmp_path / "s", limit_s=FACT_S) == Unknown(why="the agent's answer is malformed")


def test_without_an_agent_nothing_is_known(tmp_path: Path) -> None:
    verdict = ask_verdict(tmp_path / "none")
    assert verdict == Unknown(why=f"no agent answers at {tmp_path / 'none'}: No such file or directory")
