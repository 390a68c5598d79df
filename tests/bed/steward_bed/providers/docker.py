"""Provider of the docker test bed: an instance is a container with systemd as its first process.

The engine keeps all state: labels name the bed of a container, and its name carries the client token, so that any
process that talks to the same engine sees the same instances.
"""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import EndpointConfig

from steward.adapters.process import show
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.ports import Permanent, ProviderPort, Retryable
from steward_bed.providers.local_machine import refuse_as_told
from steward_bed.providers.settings import DockerSettings, read_table

BED = "steward.bed"
NODE = "steward.node"
GROUP = "steward.group"
TOKEN = "steward.token"
TYPE = "steward.type"
IMAGE = "steward.image"
CONFLICT = 409
"""The engine's status for a name that is taken, and for a container whose removal is under way."""
_NOTES = "/var/lib/bed-reboots"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The container to create; `environment` are NAME=VALUE words, `mounts` SOURCE:TARGET[:ro] binds."""

    name: str
    hostname: str
    image: str
    network: str
    address: str
    hosts: Mapping[str, str]
    environment: tuple[str, ...]
    mounts: tuple[str, ...]
    labels: Mapping[str, str]


def create(engine: docker.DockerClient, machine: ContainerSpec) -> Container:
    """Create the container without starting it. Raises the SDK's errors."""
    # Other containers find it by its name, even if no list of hosts has it.
    endpoint = EndpointConfig(
        version=engine.api.api_version, ipv4_address=machine.address or None, aliases=[machine.hostname]
    )
    return engine.containers.create(
        machine.image,
        name=machine.name,
        hostname=machine.hostname,
        labels=dict(machine.labels),
        environment=list(machine.environment),
        volumes=list(machine.mounts),
        extra_hosts=dict(machine.hosts),
        network=machine.network,
        networking_config={machine.network: endpoint},
        # systemd has to mount its own cgroup hierarchies (bed-init), and whatever shields its units.
        cap_add=["SYS_ADMIN"],
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        tmpfs={"/run": "exec", "/run/lock": ""},
    )


def remove(container: Container) -> None:
    """Remove the container; one that is gone or being removed counts as success. Raises DockerException."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != CONFLICT:
            raise


def note_reboot(container: Container, token: str) -> None:
    """Note in the container, before it is reset, its start time when this reboot was requested."""
    text = _started_at(container).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        folder = tarfile.TarInfo(_NOTES.rpartition("/")[2])
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        note = tarfile.TarInfo(f"{folder.name}/{_digest(token)}")
        note.size = len(text)
        archive.addfile(note, io.BytesIO(text))
    container.put_archive(_NOTES.rpartition("/")[0], packed.getvalue())


def is_new_boot(container: Container, token: str) -> bool:
    """Return whether the reboot of this token was requested before and the container was started since."""
    try:
        stream, _ = container.get_archive(f"{_NOTES}/{_digest(token)}")
    except NotFound:
        return False
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
        note = archive.extractfile(_digest(token))
        before = b"" if note is None else note.read()
    return before.decode() != _started_at(container)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _started_at(container: Container) -> str:
    container.reload()
    return cast(str, container.attrs["State"]["StartedAt"])


_TIMEOUT_S = 60
_ID_DIGITS = 17
_STATES = {
    "created": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "paused": InstanceState.RUNNING,
    "restarting": InstanceState.PENDING,
    "removing": InstanceState.GONE,
    "exited": InstanceState.STOPPED,
    "dead": InstanceState.STOPPED,
}


def make(table: Mapping[str, Any]) -> ProviderPort:
    """Return the provider for `[provider.docker]`. Raises Permanent for a wrong table."""
    return DockerProvider(read_table("docker", table, DockerSettings))


class DockerProvider:
    """The provider. Safe to use from several threads and processes at once; the engine serialises where needed."""

    def __init__(self, settings: DockerSettings) -> None:
        self._settings = settings
        self._hosts = dict(word.split("=", 1) for word in settings.hosts)
        self._client: docker.DockerClient | None = None
        self._counting = threading.Lock()
        """Held while machines are counted and one is made, so that the limit is kept."""

    def describe(self) -> str:
        return f"docker: containers of bed {self._settings.cluster} on {self._settings.engine}"

    def instances(self) -> Mapping[InstanceId, Instance]:
        with self._engine("list the containers") as engine:
            label = f"{BED}={self._settings.cluster}"
            found = engine.api.containers(all=True, filters={"label": [label, NODE]})
        listed = (self._instance(entry) for entry in found)
        return {instance.id: instance for instance in listed}

    def launch(self, slot: Slot, token: str) -> Instance:
        name = f"{self._settings.cluster}-{slot.node}-{_digest(token)[:12]}"
        with self._engine(f"launch {slot.node}") as engine:
            with self._counting:
                container = _find(engine, name) or self._create(engine, name, slot, token)
            if container.status == "created":
                container.start()
        return self._read_back(instance_id(str(container.id)))

    def terminate(self, instance: InstanceId) -> None:
        with self._engine(f"terminate {instance}") as engine:
            container = self._container(engine, instance)
            if container is not None:
                remove(container)

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reset the power: processes are killed, not asked to stop."""
        with self._engine(f"reboot {instance}") as engine:
            container = self._container(engine, instance)
            if container is None:
                raise Permanent(f"no instance {instance} to reboot; `steward-testbed status` lists them")
            if is_new_boot(container, token):
                return
            note_reboot(container, token)
            if container.status in ("running", "paused"):
                container.kill()
                container.wait(timeout=_TIMEOUT_S)
            container.start()

    def _create(self, engine: docker.DockerClient, name: str, slot: Slot, token: str) -> Container:
        settings = self._settings
        there = self.instances()
        if settings.faults is not None:
            refuse_as_told(settings.faults, len(there), slot)
        for other in there.values():
            if other.node == slot.node and other.state is InstanceState.RUNNING:
                raise Retryable(f"{slot.node}: instance {other.id} still has this name; terminate it first")
        machine = ContainerSpec(
            name=name,
            hostname=slot.node,
            image=settings.image,
            network=settings.network,
            address=self._hosts.get(slot.node, ""),
            hosts=self._hosts,
            environment=(*settings.environment, *_told(slot)),
            mounts=settings.mounts,
            labels={
                BED: settings.cluster,
                NODE: slot.node,
                GROUP: slot.group,
                TOKEN: token,
                TYPE: slot.types[0] if slot.types else "",
                IMAGE: slot.image,
            },
        )
        try:
            return create(engine, machine)
        except APIError as error:
            if error.status_code != CONFLICT:
                raise
            return engine.containers.get(name)  # another caller with the same token was faster

    def _container(self, engine: docker.DockerClient, instance: InstanceId) -> Container | None:
        """Return the container of this id; None if this bed has none."""
        container = _find(engine, instance.removeprefix("i-")) if instance.startswith("i-") else None
        ours = container is not None and container.labels.get(BED) == self._settings.cluster
        return container if ours else None

    def _read_back(self, instance: InstanceId) -> Instance:
        found = self.instances().get(instance)
        if found is None:
            raise Retryable(f"{instance} was launched and is gone already; look at `docker events`")
        return found

    def _instance(self, entry: Mapping[str, Any]) -> Instance:
        labels = entry["Labels"]
        node = NodeName(labels[NODE])
        return Instance(
            id=instance_id(entry["Id"]),
            node=node,
            state=_STATES.get(entry["State"], InstanceState.UNKNOWN),
            token=labels.get(TOKEN, ""),
            launched=float(entry["Created"]),
            address=self._hosts.get(node, ""),
            type=labels.get(TYPE, ""),
        )

    @contextmanager
    def _engine(self, wish: str) -> Iterator[docker.DockerClient]:
        """Yield the engine, and translate its errors for the caller."""
        try:
            if self._client is None:
                self._client = docker.DockerClient(base_url=self._settings.engine, version="auto", timeout=_TIMEOUT_S)
            yield self._client
        except APIError as error:
            kind = Permanent if error.status_code in (400, 404) else Retryable
            raise kind(f"docker: cannot {wish}: {show(str(error.explanation or error))}") from error
        except (DockerException, OSError) as error:
            remedy = f"is the engine at {self._settings.engine} running?"
            raise Retryable(f"docker: cannot {wish}: {show(str(error))}; {remedy}") from error


def _told(slot: Slot) -> tuple[str, ...]:
    """Return the environment of the container's first process: its role, and the features of its node in Slurm."""
    return (f"BED_NODE_ROLE={slot.role}", f"BED_FEATURES={','.join(sorted(slot.features))}")


def instance_id(container_id: str) -> InstanceId:
    """Return the instance id made from the container's id; the node itself derives the same one at its start."""
    return InstanceId(f"i-{container_id[:_ID_DIGITS]}")


def _find(engine: docker.DockerClient, name_or_id: str) -> Container | None:
    try:
        return engine.containers.get(name_or_id)
    except NotFound:
        return None
