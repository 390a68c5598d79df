"""The second witness tells a live slurmd from a frozen one and from none, on real slurmds."""

import itertools
import os
import resource
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from steward.adapters.witness import PortWitness
from steward.model.ids import NodeName
from steward.model.witness import Address, Witness, WitnessSeen
from tests.contract.conftest import Clusters

HERE = "127.0.0.1"
N1 = NodeName("n1")


def here(port: int) -> Address:
    return Address(host=HERE, port=port)


def result(witness: PortWitness, address: Address) -> Witness | None:
    seen = witness.look(address)
    return seen.result if seen is not None else None


def test_a_live_a_frozen_and_a_dead_slurmd_are_told_apart(clusters: Clusters, slurm_root: Path) -> None:
    cluster = clusters.of(slurm_root)
    witness, port = PortWitness(now=lambda: 5.0), cluster.nodes["n3"]
    assert witness.look(here(port)) == WitnessSeen(result=Witness.ALIVE, at=5.0)

    cluster.daemons["n3"].send_signal(signal.SIGSTOP)
    try:
        assert result(witness, here(port)) is Witness.UNANSWERED
    finally:
        cluster.daemons["n3"].send_signal(signal.SIGCONT)
    assert result(witness, here(port)) is Witness.ALIVE

    cluster.stop("n3")
    try:
        assert result(witness, here(port)) is Witness.REFUSED
    finally:
        cluster.start_slurmd("n3")
    cluster.wait("slurmd listens again", lambda: result(witness, here(port)) is Witness.ALIVE)


def test_a_port_that_nobody_serves_though_it_is_bound_is_unanswered() -> None:
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        listener.listen()
        witness = PortWitness(answer_s=0.2)

        assert result(witness, here(listener.getsockname()[1])) is Witness.UNANSWERED


def test_a_rack_that_does_not_answer_is_looked_at_all_at_once_and_holds_up_no_other_node() -> None:
    """As a host without power does, a port whose queue is full answers no connection; but the host does."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HERE, 0))
        listener.listen(0)
        dead = here(listener.getsockname()[1])
        for _ in range(2):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex((dead.host, dead.port))
        refusing = stack.enter_context(socket.socket())
        refusing.bind((HERE, 0))
        rack = {NodeName(f"dead{number}"): dead for number in range(300)}
        told: list[Mapping[NodeName, WitnessSeen]] = []
        began = time.monotonic()

        PortWitness().look_at_all({**rack, N1: here(refusing.getsockname()[1])}, told.append)

        assert time.monotonic() - began < 60.0, "one after the other they take five minutes"
    assert {node: seen.result for node, seen in told[0].items()} == {N1: Witness.REFUSED}
    rest = {node: seen.result for part in told[1:] for node, seen in part.items()}
    assert rest == dict.fromkeys(rack, Witness.UNANSWERED)


@pytest.mark.parametrize(
    ("address", "port"), [(HERE, 0), (HERE, 65536), ("no.such.host.invalid", 6818), ("a" * 300, 1)]
)
def test_what_cannot_be_looked_at_is_silent_and_raises_nothing(address: str, port: int) -> None:
    assert result(PortWitness(connect_s=5.0), Address(host=address, port=port)) is Witness.SILENT


def limit_that_leaves(free: int) -> int:
    """Open files of tests before this one may have left gaps, which are free, too."""
    taken = set(map(int, os.listdir("/proc/self/fd")))
    numbers = (number for number in itertools.count() if number not in taken)
    return next(itertools.islice(numbers, free, None))


def test_without_sockets_of_our_own_nothing_is_known_of_a_node() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    told: list[Mapping[NodeName, WitnessSeen]] = []
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        listener.listen()
        dead = here(listener.getsockname()[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_that_leaves(12), hard))
        try:
            PortWitness(answer_s=0.2).look_at_all({NodeName(f"n{number}"): dead for number in range(60)}, told.append)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 0 < sum(map(len, told)) < 20
    assert {seen.result for part in told for seen in part.values()} == {Witness.UNANSWERED}


def test_where_the_resolver_does_not_answer_nothing_is_known_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, flags: int = 0, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME if flags else socket.EAI_AGAIN, "")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    assert PortWitness().look(Address(host="n1", port=6818)) is None
