"""A head that decides nothing says so before all that is shown; a head that is silent is not waited for silently."""

import json
import socket
from collections.abc import Iterator

import pytest

from steward.client import Client, Ears, Unreachable
from steward.workflows.snapshot import HeadStandstill
from tests.builders.cli import steward
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench

READERS = (
    ["nodes"],
    ["nodes", "--wrong"],
    ["cases"],
    ["jobs"],
    ["checks"],
    ["explain", "n1"],
    ["status"],
    ["top", "--once"],
)
WHY = "database is locked"


@pytest.fixture
def stands(api: ApiBench) -> ApiBench:
    api.show(a_cluster().job())
    api.standstill = HeadStandstill(since=api.clock.now() - 40.0, why=WHY)
    return api


@pytest.mark.parametrize("words", READERS)
def test_every_reader_says_once_that_nothing_is_decided(stands: ApiBench, words: list[str]) -> None:
    said = [line for line in steward(stands, *words).output.splitlines() if line.startswith("decides   nothing since")]
    assert [line.endswith(f": {WHY}") for line in said] == [True]
    stands.standstill = None
    assert "decides" not in steward(stands, *words).output


@pytest.mark.parametrize("words", [["nodes", "--wrong"], ["cases"], ["explain", "n1"]])
def test_it_is_said_before_anything_else(stands: ApiBench, words: list[str]) -> None:
    assert steward(stands, *words).output.startswith("decides   nothing since")


def test_programs_get_a_field_of_an_object_and_are_told_of_lists_beside_them(stands: ApiBench) -> None:
    found = json.loads(steward(stands, "explain", "n1", "--json").stdout)
    assert (found["standstill"]["why"], found["standstill"]["at"]) == (WHY, stands.clock.now())
    listed = steward(stands, "nodes", "--json")
    assert len(json.loads(listed.stdout)) == 6
    assert WHY in listed.stderr


@pytest.fixture
def frozen() -> Iterator[str]:
    """A head whose process is stopped: the kernel takes connections for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_frozen_head_is_told_of_before_the_wait_is_over(frozen: str) -> None:
    said: list[str] = []
    client = Client(frozen, ears=Ears(silence=said.append), patience=0.002)
    looks = (lambda: client.object("/v1/status"), lambda: client.array("/v1/nodes"))
    for look in (*looks, client.doctor, lambda: client.events(wait_s=0.01)):
        with pytest.raises(Unreachable, match=r"does not answer in time: .*systemctl restart stewardd"):
            look()
    assert len(said) == 4
    assert all("has not answered for" in text and "systemctl restart stewardd" in text for text in said)
