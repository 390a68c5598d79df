"""The second witness tells a live slurmd from a frozen one and from none, on real slurmds."""

import signal
import socket
from pathlib import Path

import pytest

from steward.adapters.witness import PortWitness
from steward.model.witness import Witness
from tests.contract.conftest import Clusters

HERE = "127.0.0.1"


def test_a_live_a_frozen_and_a_dead_slurmd_are_told_apart(clusters: Clusters, slurm_root: Path) -> None:
    cluster = clusters.of(slurm_root)
    witness, port = PortWitness(now=lambda: 5.0), cluster.nodes["n3"]
    assert witness.look(HERE, port).result is Witness.ALIVE
    assert witness.look(HERE, port).at == 5.0

    cluster.daemons["n3"].send_signal(signal.SIGSTOP)
    try:
        assert witness.look(HERE, port).result is Witness.SILENT
    finally:
        cluster.daemons["n3"].send_signal(signal.SIGCONT)
    assert witness.look(HERE, port).result is Witness.ALIVE

    cluster.stop("n3")
    try:
        assert witness.look(HERE, port).result is Witness.REFUSED
    finally:
        cluster.start_slurmd("n3")
    cluster.wait("slurmd listens again", lambda: witness.look(HERE, port).result is Witness.ALIVE)


def test_a_port_that_nobody_serves_though_it_is_bound_is_silent() -> None:
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        listener.listen()
        witness = PortWitness(answer_s=0.2)

        assert witness.look(HERE, listener.getsockname()[1]).result is Witness.SILENT


@pytest.mark.parametrize(
    ("address", "port"), [(HERE, 0), (HERE, 65536), ("no.such.host.invalid", 6818), ("a" * 300, 1)]
)
def test_what_cannot_be_looked_at_is_silent_and_raises_nothing(address: str, port: int) -> None:
    assert PortWitness(connect_s=0.5).look(address, port).result is Witness.SILENT
