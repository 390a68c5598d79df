"""What a runner tells its agent, and how often, while the agent does not answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steward.deep.tell import LAST_TRIES, Teller
from steward.model.ids import NodeName
from tests.fakes.until import FACT_S


@contextmanager
def an_agent(path: Path, silent: int) -> Iterator[list[bytes]]:
    """It reads each line, leaves the first `silent` of them without an answer, and answers the others."""
    heard: list[bytes] = []
    kept: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen(64)

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                    line = peer.recv(4096)
                except OSError:
                    return
                kept.append(peer)  # its end would be an answer
                if not line:
                    return
                heard.append(line)
                if len(heard) > silent:
                    peer.sendall(b"steward/1 ok\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
                last.connect(str(path))
            thread.join()
            for peer in kept:
                peer.close()


class Growing(Teller):
    """Impatient with so many tries, and patient then."""

    def __init__(self, path: Path, impatient: int) -> None:
        self._tries = impatient
        super().__init__(path, "run-1", NodeName("n1"))

    @property
    def _timeout_s(self) -> float:
        self._tries -= 1
        return 0.2 if self._tries >= 0 else FACT_S

    @_timeout_s.setter
    def _timeout_s(self, _: float) -> None:
        pass


@pytest.mark.parametrize("silent", [0, 1, LAST_TRIES - 1])
def test_an_agent_that_is_slow_to_answer_hears_the_last_word(tmp_path: Path, silent: int) -> None:
    with an_agent(tmp_path / "sock", silent) as heard:
        assert Growing(tmp_path / "sock", silent).progress("done", is_done=True)
    assert len(heard) == silent + 1
    assert len(set(heard)) == 1


def test_an_agent_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with an_agent(tmp_path / "sock", 100) as heard:
        assert not Growing(tmp_path / "sock", 100).progress("done", is_done=True)
    assert len(heard) == LAST_TRIES


def test_what_the_agent_did_not_hear_is_said_with_the_next(tmp_path: Path) -> None:
    with an_agent(tmp_path / "sock", 1) as heard:
        teller = Growing(tmp_path / "sock", 1)
        assert not teller.progress("half")
        assert teller.progress("whole")
    first, again, second = heard
    assert first == again != second


def test_an_agent_that_is_not_there_is_not_waited_for(tmp_path: Path) -> None:
    assert not Growing(tmp_path / "nobody", 0).progress("done", is_done=True)
