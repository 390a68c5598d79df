"""A node's slow network in a docker bed: the kernel's traffic control, told by a container that shares the node's
network, because the node's own may not."""

from docker.errors import ContainerError
from docker.models.containers import Container

from steward.adapters.providers.docker_machine import BED
from steward.testbed.bed import BedError
from steward.testbed.docker_engine import engine

USUAL_MBPS = 20.0
_DEVICE = "eth0"
# Not every kernel has netem; tbf alone slows just as well.
_SLOW = (
    f"tc qdisc replace dev {_DEVICE} root netem rate $1 2>/dev/null || "
    f"tc qdisc replace dev {_DEVICE} root tbf rate $1 burst 32kb latency 50ms"
)
_MEND = f"! tc qdisc show dev {_DEVICE} | grep -Eq 'netem|tbf' || tc qdisc del dev {_DEVICE} root"


def rate_of(text: str) -> float:
    """Mbit/s; no text means the usual. Raises BedError for what is no rate."""
    try:
        rate = float(text or USUAL_MBPS)
    except ValueError:
        rate = 0.0
    if not 0.1 <= rate <= 1e5:
        raise BedError(f"slow-link takes Mbit/s from 0.1 to 100000, for example 20; not {text!r}")
    return rate


def slow_down(container: Container, mbps: float) -> None:
    """What the node sends leaves it no faster; until its machine is switched off or its cable is pulled."""
    if container.status != "running":
        raise BedError(f"{container.name} is {container.status}: only a machine that runs has a link to slow down")
    _control(container, _SLOW, f"{mbps * 1000:.0f}kbit")


def mend(container: Container) -> None:
    """As fast as before. A link that is not slow stays as it is, and a machine that is off has none."""
    if container.status == "running":
        _control(container, _MEND)


def _control(container: Container, script: str, *words: str) -> None:
    with engine() as client:
        try:
            client.containers.run(
                container.attrs["Image"],
                ["-c", script, "sh", *words],
                entrypoint="sh",
                network_mode=f"container:{container.id}",
                cap_add=["NET_ADMIN"],
                labels={BED: container.labels[BED]},
                remove=True,
            )
        except ContainerError as error:
            said = error.stderr.decode("utf-8", "replace") if isinstance(error.stderr, bytes) else str(error.stderr)
            remedy = "the engine's kernel needs sch_netem or sch_tbf, and the engine must grant NET_ADMIN"
            raise BedError(f"{container.name}: tc: {said.strip()}; {remedy}") from error
