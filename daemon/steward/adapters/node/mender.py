"""Light repairs on this machine: systemd restarts a unit, the driver resets a GPU. Needs root."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from steward.adapters.process import run
from steward.model.mend import is_gpu, is_gpu_uuid, is_unit
from steward.ports import Permanent

_RESTART_S = 40.0
_ASK_S = 15.0
_RESET_S = 120.0


class NodeMender:
    """The light repairs of this node.

    `units` are the services that may be restarted, by the agent's own settings. `let_go` closes the GPU files that the
    agent itself has open, for the duration of a reset.
    """

    def __init__(
        self,
        *,
        units: Collection[str],
        let_go: Callable[[], AbstractContextManager[None]],
        systemctl: str = "systemctl",
        nvidia_smi: str = "nvidia-smi",
    ) -> None:
        self._units = frozenset(_full_name(unit) for unit in units)
        self._let_go = let_go
        self._systemctl, self._nvidia_smi = systemctl, nvidia_smi

    def restart(self, unit: str) -> None:
        """Restart the unit, and wait until systemd says that it runs.

        Raises Permanent for a unit that is not allowed, Retryable if it cannot be restarted.
        """
        if not is_unit(unit) or _full_name(unit) not in self._units:
            raise Permanent(f"{unit[:100]} is not among agent.restart_units: not restarted")
        run((self._systemctl, "restart", "--", _full_name(unit)), timeout_s=_RESTART_S)

    def reset(self, gpu: str) -> tuple[str, ...]:
        """Reset the GPU, and return its names (UUID, PCI address).

        Raises Permanent for a bad name and while a process uses the GPU, Retryable if the driver does not reset it.
        """
        if not is_gpu(gpu):
            raise Permanent(f"{gpu[:100]!r} is not a GPU's UUID or PCI address: nothing reset")
        chosen = gpu if is_gpu_uuid(gpu) or "." in gpu else f"{gpu}.0"
        names = self._ask(chosen, "--query-gpu=uuid,pci.bus_id")
        if users := self._ask(chosen, "--query-compute-apps=pid"):
            raise Permanent(f"GPU {chosen} is in use by process {', '.join(users[:8])}: not reset")
        with self._let_go():
            run((self._nvidia_smi, "--gpu-reset", "-i", chosen), timeout_s=_RESET_S)
        return tuple(dict.fromkeys((gpu, *names)))

    def _ask(self, gpu: str, query: str) -> list[str]:
        done = run((self._nvidia_smi, "-i", gpu, query, "--format=csv,noheader"), timeout_s=_ASK_S)
        return [word.strip() for word in done.text.replace("\n", ",").split(",") if word.strip()]


def same_gpu(one: str, other: str) -> bool:
    """Return whether two names are of one GPU."""
    # PCI addresses have four or eight digits of their domain, in upper or lower case, with or without the function.
    return bool(one) and _normalised(one) == _normalised(other)


def _normalised(name: str) -> str:
    if is_gpu_uuid(name) or not is_gpu(name):
        return name
    domain, bus, device = name.lower().split(":")
    return f"{int(domain, 16):x}:{bus}:{device.partition('.')[0]}"


def _full_name(unit: str) -> str:
    return unit if unit.endswith(".service") else f"{unit}.service"
