"""Dialling a unix socket all the time, as a client does that waits for its name."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def is_listened_at(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        return peer.connect_ex(str(path)) == 0


@contextmanager
def never_refused(path: Path) -> Iterator[threading.Event]:
    """Dial `path` again and again in a thread; the event is set at the first answer or refusal. Raises AssertionError
    at the end where the name was there and nobody listened."""
    answered, over = threading.Event(), threading.Event()
    refused: list[ConnectionRefusedError] = []

    def dial() -> None:
        while not (over.is_set() or answered.is_set() or refused):
            with socket.socket(socket.AF_UNIX) as peer:
                try:
                    peer.connect(str(path))
                    answered.set()
                except FileNotFoundError:
                    continue
                except ConnectionRefusedError as error:
                    refused.append(error)
                    answered.set()  # nobody need wait any more

    thread = threading.Thread(target=dial)
    thread.start()
    try:
        yield answered
    finally:
        over.set()
        thread.join()
    assert not refused, f"{path} is there before it is served"
