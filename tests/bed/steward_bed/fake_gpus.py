"""Pretended NVIDIA GPUs of a bed's nodes: a driver's list of devices, and an NVML of ours that obeys a file."""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from steward.adapters.process import Failed, run
from steward_bed.bed import BedError
from steward_bed.providers.local import GPU_FAULTS

FOLDER = "gpu"
"""Below the bed's directory."""
_SOURCES = Path(__file__).resolve().parents[3] / "tests" / "fake_nvml"
_PROC = Path("/proc")
_FIRST_BUS = 0x10
_BUILD_S = 60.0

Table = Mapping[str, object]


def lay_out(where: Path, count: int) -> None:
    """The library, NVIDIA's Python bindings, and a /proc whose NVIDIA driver lists `count` devices. Raises BedError."""
    if not _SOURCES.is_dir():
        raise BedError("the sources of the pretended GPUs are not here: run from a checkout, or without --gpus")
    try:
        run(["make", "-s", "-C", str(_SOURCES), f"OUT={where / 'lib'}"], timeout_s=_BUILD_S)
    except Failed as error:
        raise BedError(f"the library of the pretended GPUs cannot be built: {error}; install gcc and make") from error
    bindings = importlib.util.find_spec("pynvml")
    if bindings is None or bindings.origin is None:
        raise BedError("nvidia-ml-py is not installed: pip install 'steward-slurm[gpu]', or do without --gpus")
    (where / "python").mkdir()
    shutil.copy(bindings.origin, where / "python" / "pynvml.py")
    _make_proc(where / "proc", count)


def settings(where: Path | str) -> Mapping[str, Table]:
    """Sections of steward.toml: where the agent finds the driver, and less patience than production has."""
    return {
        "agent": {"proc_dir": f"{where}/proc", "check_interval_s": 2.0},
        "checks.gpu.smi_hang": {"timeout_s": 1.0, "misses": 2},
    }


def environment(where: Path | str, own: Path | str, instance_id: Path | str) -> Mapping[str, str]:
    """The further environment of a node's agent; `own` is the node's directory. Another instance has other GPUs."""
    return {
        "LD_LIBRARY_PATH": f"{where}/lib",
        "PYTHONPATH": f"{where}/python",
        "FAKE_NVML": f"{own}/{GPU_FAULTS}",
        "FAKE_NVML_SEED": str(instance_id),
    }


def write_fault(own: Path, text: str) -> None:
    """`text` is lines as tests/fake_nvml/script.h has them, parted by commas."""
    new = own / f"{GPU_FAULTS}.new"
    new.write_text("".join(f"{line.strip()}\n" for line in text.split(",")))
    new.replace(own / GPU_FAULTS)


def mend(own: Path) -> None:
    (own / GPU_FAULTS).unlink(missing_ok=True)


def has_fault(own: Path) -> bool:
    return (own / GPU_FAULTS).exists()


def _make_proc(proc: Path, count: int) -> None:
    """All of the real one but its processes, by links; in place of a real driver the pretended one."""
    (proc / "driver" / "nvidia" / "gpus").mkdir(parents=True)
    for number in range(count):
        device = proc / "driver" / "nvidia" / "gpus" / f"0000:{_FIRST_BUS + number:02x}:00.0"
        device.mkdir()
        (device / "information").write_text("Model: \t\t NVIDIA H200\n")
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() and entry.name != "driver":
            (proc / entry.name).symlink_to(entry)
