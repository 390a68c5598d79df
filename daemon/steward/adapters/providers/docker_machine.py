"""How a container becomes a machine: systemd as first process on cgroups of its own, one address, a name.

Shared by the provider, which makes nodes, and the test bed, which makes the head.
"""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import EndpointConfig

BED = "steward.bed"
NODE = "steward.node"
GROUP = "steward.group"
TOKEN = "steward.token"
TYPE = "steward.type"
IMAGE = "steward.image"
CONFLICT = 409
"""What the engine says of a name that is taken, and of a container whose removal is under way."""
_NOTES = "/var/lib/bed-reboots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One container, before it is made; `environment` are NAME=VALUE words, `mounts` SOURCE:TARGET[:ro] binds."""

    name: str
    hostname: str
    image: str
    network: str
    address: str
    hosts: Mapping[str, str]
    environment: tuple[str, ...]
    mounts: tuple[str, ...]
    labels: Mapping[str, str]


def create(engine: docker.DockerClient, machine: Machine) -> Container:
    """The container, not started yet. Raises the SDK's errors."""
    # Its name leads to it from every other container, also where no list of hosts has it.
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
        # systemd wants to mount: its own cgroup hierarchies (bed-init), and what its units ask to be shielded from.
        cap_add=["SYS_ADMIN"],
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        tmpfs={"/run": "exec", "/run/lock": ""},
    )


def remove(container: Container) -> None:
    """Gone already, or its removal under way, is success. Raises DockerException."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != CONFLICT:
            raise


def note_reboot(container: Container, token: str) -> None:
    """Write into the container, before it is reset, which start it had when this reboot was asked for."""
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
    """True when the reboot of this token was asked for already and the container was started since."""
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
