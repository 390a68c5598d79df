"""The start of an elastic run's coordinator, and the submission of its replicas, as the run's user."""

import contextlib
import json
import os
import random
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.node import job_look
from steward.adapters.process import Failed, run, said_by
from steward.model.ids import JobId
from steward.ports import Retryable

START_S = 20.0
ORDER_S = 120.0
_MAX_OUTPUT = 4096
_PORTS = range(20_000, 32_000)
"""The range of ports to choose from: below those that the kernel gives to connections by itself."""
TRIES = 64
"""The most ports that are tried: the agent's loop waits meanwhile, and any user may hold thousands of ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorPlace:
    """The place of a run's coordinator: its files are in `folder`, and it listens at `port`."""

    run: JobId
    uid: int
    folder: Path
    port: int
    token: str

    def dial(self) -> socket.socket:
        """Return a socket connected to the coordinator. Raises OSError."""
        # The folder is the user's, and may lead anywhere.
        return job_look.dial(self.folder.parent, self.folder.name, "relay.sock")


class ElasticStarter:
    """The starter of coordinators and replicas. Its calls block: use them in a thread."""

    def __init__(self, slurm_conf: str) -> None:
        path = os.environ.get("PATH", os.defpath)  # Slurm's commands may be anywhere
        self._env = [f"PATH={path}", "LC_ALL=C", *([f"SLURM_CONF={slurm_conf}"] if slurm_conf else [])]

    def coordinate(
        self, place: CoordinatorPlace, *, nodes: int, sizes: tuple[int, ...], grace_s: int, listening: int | None
    ) -> None:
        """Start the coordinator, and return when it has begun. Raises Failed.

        `listening` is the descriptor of a socket that listens at the coordinator's port; None: it makes its own.
        """
        listed = ",".join(str(size) for size in sizes)
        argv = f"{place.run} --folder {place.folder} --nodes {nodes} --sizes {listed} --grace {grace_s}"
        argv += f" --port {place.port}" if listening is None else f" --listening {listening}"
        self._run_child("coordinate", place, {"argv": argv}, START_S, () if listening is None else (listening,))

    def submit(self, place: CoordinatorPlace, asked: Mapping[str, str]) -> None:
        """Submit a replica job, unless there is one with that comment. Raises Failed, with sbatch's message."""
        self._run_child("submit", place, asked, ORDER_S)

    def _run_child(
        self, what: str, place: CoordinatorPlace, asked: Mapping[str, str], timeout_s: float, fds: tuple[int, ...] = ()
    ) -> None:
        child = (sys.executable, "-I", "-m", "steward.adapters.node.elastic_child")
        argv = ("env", "--ignore-environment", *self._env, *child, what, str(place.uid), str(place.run))
        asked = {**asked, "folder": str(place.folder), "token": place.token}
        try:
            run(argv, timeout_s=timeout_s, input=json.dumps(asked).encode(), max_bytes=_MAX_OUTPUT, pass_fds=fds)
        except Failed as error:
            raise Failed(said_by(error), error.completed) from None


def listen(among: Sequence[int] = _PORTS) -> socket.socket:
    """Return a socket that listens at a free port of all addresses.

    Raises Retryable if `TRIES` random tries find none.
    """
    # It listens from now on, so that no other user takes the port before the coordinator runs.
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    for number in random.SystemRandom().sample(range(len(among)), min(TRIES, len(among))):
        with contextlib.suppress(OSError):
            return socket.create_server(("", among[number]), family=family, dualstack_ipv6=family == socket.AF_INET6)
    raise Retryable(f"no port is free for an elastic run: {TRIES} of {among[0]} to {among[-1]} are taken")


def address_towards(heads: Sequence[tuple[str, int]]) -> str:
    """Return this machine's address on the route to a head, where the cluster's nodes reach it.

    The first head whose name is known counts. Raises OSError.
    """
    *others, last = heads
    for head in others:
        with contextlib.suppress(OSError):
            return _address_towards(*head)
    return _address_towards(*last)


def _address_towards(host: str, port: int) -> str:
    """Return this machine's address on the route to the host. Raises OSError."""
    family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as way:
        way.connect(place)
        return str(way.getsockname()[0])
