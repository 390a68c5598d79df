"""The Docker engine as a docker bed needs it: reached, an image, a network, and all traces removed."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

import docker
from docker.errors import APIError, DockerException
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool

from steward.adapters.process import Failed, run
from steward_bed.bed import BedError, Say
from steward_bed.providers.docker import BED, remove

DEFAULT_SLURM = "22.05"
_DEFAULT_ENGINE = "unix:///var/run/docker.sock"
_SOURCES = Path(__file__).resolve().parents[3] / "docker"
_BUILD_S = 1200.0
_TIMEOUT_S = 60
_TRIES = 5
_AT_ONCE = 4
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_INOTIFY_EACH = 5


def engine_url() -> str:
    """Where the engine listens. Raises BedError for one whose files are not this machine's."""
    url = os.environ.get("DOCKER_HOST") or _DEFAULT_ENGINE
    if not url.startswith("unix://"):
        raise BedError(f"DOCKER_HOST={url}: a bed needs an engine of this machine, at a unix:// address")
    return url


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """The engine; what goes wrong with it inside becomes a BedError."""
    url = engine_url()
    try:
        client = docker.DockerClient(base_url=url, version="auto", timeout=_TIMEOUT_S)
        try:
            yield client
        finally:
            client.close()
    except APIError as error:
        raise BedError(f"the Docker engine refuses: {error.explanation or error}") from error
    except DockerException as error:
        raise BedError(f"no Docker engine answers at {url}; docker/engine.sh start ({error})") from error


def image_for(slurm: str, say: Say) -> str:
    """The image of this Slurm version, made up to date with the working tree (or STEWARD_BED_IMAGE as it is)."""
    if told := os.environ.get("STEWARD_BED_IMAGE"):
        return told
    script = _SOURCES / "build"
    if not script.is_file():
        raise BedError("the image's sources are not here: run from a checkout, or set STEWARD_BED_IMAGE to an image")
    say(f"building the image for Slurm {slurm} (minutes the first time, then seconds)")
    try:
        run([str(script), slurm], timeout_s=_BUILD_S)
    except Failed as error:
        words = "" if error.completed is None else error.completed.error_text
        raise BedError(f"{script} {slurm} failed: {' | '.join(words.splitlines()[-4:]) or error}") from error
    return f"steward-bed:{slurm}"


def must_have_room(client: docker.DockerClient, machines: int) -> None:
    """systemd in a machine that gets too few inotify instances of the kernel does not boot, and says so to nobody.
    Raises BedError with the remedy."""
    limit, running = int(_INOTIFY.read_text()), len(client.containers.list())
    if (running + machines) * _INOTIFY_EACH > limit:
        words = f"{running} containers run, and {machines} more with systemd need more than the kernel allows"
        needed = max(1024, 2 * (running + machines) * _INOTIFY_EACH)
        raise BedError(f"{words}: sysctl fs.inotify.max_user_instances={needed} (it is {limit})")


def slurm_of(client: docker.DockerClient, image: str) -> str:
    """The Slurm version in an image, such as "24.11.5"."""
    said = client.containers.run(image, ["-V"], entrypoint="slurmctld", remove=True).decode()
    return said.split()[-1]


def make_network(client: docker.DockerClient, name: str) -> IPv4Network:
    """A bridge of its own. Fixed addresses need a network that was given its range: the engine picks, we insist."""
    for _ in range(_TRIES):
        trial = client.networks.create(name, driver="bridge", labels={BED: name})
        trial.reload()
        subnet = trial.attrs["IPAM"]["Config"][0]["Subnet"]
        trial.remove()
        pool = IPAMPool(subnet=subnet)
        try:
            client.networks.create(name, driver="bridge", labels={BED: name}, ipam=IPAMConfig(pool_configs=[pool]))
        except APIError:
            continue  # another bed took the range in between
        return IPv4Network(subnet)
    raise BedError("the engine has no free range for a network; `docker network prune` removes unused ones")


def containers(client: docker.DockerClient, cluster: str) -> list[Container]:
    return client.containers.list(all=True, filters={"label": f"{BED}={cluster}"}, ignore_removed=True)


def remove_all(client: docker.DockerClient, cluster: str) -> None:
    """Every container and network of a bed; nothing there is success."""
    while found := containers(client, cluster):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(remove, found))
    for network in client.networks.list(filters={"label": f"{BED}={cluster}"}):
        network.remove()
