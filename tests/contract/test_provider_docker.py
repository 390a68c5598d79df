"""The docker provider, spoken to an engine that is a fake; tests/e2e holds it to the same contract on a real one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.ports import Permanent, Retryable
from steward_bed.providers.docker import DockerProvider
from steward_bed.providers.local_machine import REFUSE_LAUNCH
from steward_bed.providers.settings import DockerSettings
from tests.contract.provider import OTHER, SLOT, ProviderContract
from tests.fakes.engine import FakeContainer, FakeEngine, fake_engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    with fake_engine(tmp_path) as made:
        yield made


def provider_of(engine: FakeEngine, faults: Path | None = None, cluster: str = "bed") -> DockerProvider:
    hosts = ("head=10.0.0.2", "n1=10.0.0.11", "n2=10.0.0.12")
    return DockerProvider(
        DockerSettings(
            image="image",
            network="net",
            cluster=cluster,
            engine=engine.url,
            hosts=hosts,
            mounts=("/d:/bed",),
            environment=("BED_ROLE=node",),
            faults=faults,
        )
    )


@pytest.fixture
def provider(engine: FakeEngine, tmp_path: Path) -> DockerProvider:
    return provider_of(engine, tmp_path)


def only(engine: FakeEngine) -> FakeContainer:
    (container,) = engine.containers.values()
    return container


class TestDockerProvider(ProviderContract):
    """The contract of all providers."""


def test_a_node_is_a_container_with_its_name_address_and_words(provider: DockerProvider, engine: FakeEngine) -> None:
    made = provider.launch(SLOT, "t1")
    config = only(engine).config
    assert (config["Hostname"], made.address) == ("n1", "10.0.0.11")
    assert config["Env"] == ["BED_ROLE=node", "BED_NODE_ROLE=Compute", "BED_FEATURES="]
    assert config["NetworkingConfig"]["EndpointsConfig"]["net"]["IPAMConfig"]["IPv4Address"] == "10.0.0.11"


def test_the_instance_id_is_what_the_node_itself_finds(provider: DockerProvider, engine: FakeEngine) -> None:
    assert provider.launch(SLOT, "t1").id == f"i-{only(engine).id[:17]}"


def test_a_container_that_was_made_but_not_started_is_started_by_the_next_try(
    provider: DockerProvider, engine: FakeEngine
) -> None:
    provider.launch(SLOT, "t1")
    only(engine).status = "created"  # as if the caller had died in between
    assert provider.launch(SLOT, "t1").state is InstanceState.RUNNING
    assert only(engine).status == "running"


def test_another_process_with_the_same_token_finds_the_same_container(
    provider: DockerProvider, engine: FakeEngine
) -> None:
    assert provider_of(engine).launch(SLOT, "t1").id == provider.launch(SLOT, "t1").id


def test_a_dead_machine_is_listed_as_stopped_and_not_started_by_its_token(
    provider: DockerProvider, engine: FakeEngine
) -> None:
    provider.launch(SLOT, "t1")
    only(engine).status = "exited"
    assert provider.launch(SLOT, "t1").state is InstanceState.STOPPED


def test_the_same_reboot_token_reboots_once(provider: DockerProvider, engine: FakeEngine) -> None:
    made = provider.launch(SLOT, "t1")
    provider.reboot(made.id, "r1")
    provider.reboot(made.id, "r1")
    assert only(engine).starts == 2
    provider.reboot(made.id, "r2")
    assert only(engine).starts == 3


def test_a_reboot_that_was_noted_but_not_done_is_done_by_the_next_try(
    provider: DockerProvider, engine: FakeEngine
) -> None:
    made = provider.launch(SLOT, "t1")
    provider.reboot(made.id, "r1")
    only(engine).starts = 1  # as if the caller had died before the start
    provider.reboot(made.id, "r1")
    assert only(engine).starts == 2


def test_a_slot_whose_machine_is_still_on_gets_no_second_one(provider: DockerProvider) -> None:
    made = provider.launch(SLOT, "t1")
    with pytest.raises(Retryable, match=f"{made.id} still has this name; terminate it first"):
        provider.launch(SLOT, "t2")


def test_without_capacity_a_launch_is_refused_and_nothing_is_made(
    provider: DockerProvider, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / REFUSE_LAUNCH).touch()
    with pytest.raises(Retryable, match=r"^capacity"):
        provider.launch(SLOT, "t1")
    assert not engine.containers


def test_containers_of_another_bed_are_neither_listed_nor_touched(provider: DockerProvider, engine: FakeEngine) -> None:
    theirs = provider_of(engine, cluster="other").launch(OTHER, "t1")
    assert not provider.instances()
    provider.terminate(theirs.id)
    assert only(engine).status == "running"
    with pytest.raises(Permanent):
        provider.reboot(theirs.id, "r1")


@pytest.mark.parametrize(("status", "error"), [(500, Retryable), (409, Retryable), (400, Permanent), (404, Permanent)])
def test_the_engines_refusal_is_told_in_one_line(
    provider: DockerProvider, engine: FakeEngine, status: int, error: type[Exception]
) -> None:
    engine.refuse = (status, "no\nway")
    with pytest.raises(error, match=r"^docker: cannot list the containers: no way$"):
        provider.instances()


def test_without_an_engine_nothing_can_be_known(tmp_path: Path) -> None:
    gone = FakeEngine(url=f"unix://{tmp_path}/gone.sock")
    with pytest.raises(Retryable, match=r"is the engine at unix://.*/gone.sock running"):
        provider_of(gone).terminate(InstanceId("i-0123456789abcdef0"))
