"""Another ordinary user of this machine, who listens at a port. Needs root."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

UID = 1666
_LISTENS = f"""
import os, socket, sys
os.setresuid({UID}, {UID}, {UID})
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def a_strangers_port() -> Iterator[int]:
    """The port, until the end of the block."""
    argv = [sys.executable, "-c", _LISTENS]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        try:
            yield int(stranger.stdout.readline())
        finally:
            stranger.communicate()
