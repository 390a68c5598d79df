"""NVML without a GPU: the library of tests/fake_nvml, loaded by NVIDIA's own Python bindings, and the file it obeys."""

import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from steward.adapters.node.nvml import Nvml
from steward.adapters.process import run

SOURCES = Path(__file__).parents[1] / "fake_nvml"
DEVICES = tuple(f"0000:{bus:02x}:00.0" for bus in range(0x10, 0x18))
"""What the driver lists."""


@cache
def library() -> "TemporaryDirectory[str]":
    """The directory of the library, built once in a session and gone with it."""
    where = TemporaryDirectory(prefix="fake-nvml-")
    run(["make", "-s", "-C", str(SOURCES), f"OUT={where.name}"], timeout_s=60)
    return where


class FakeGpus:
    """Eight GPUs whose faults are lines of a file (tests/fake_nvml/script.h)."""

    def __init__(self, where: Path) -> None:
        self._script = where / "gpus"
        self._seed = where / "seed"
        self.nvml = Nvml(self.argv())

    def argv(self) -> tuple[str, ...]:
        """The child that asks them."""
        words = (f"LD_LIBRARY_PATH={library().name}", f"FAKE_NVML={self._script}", f"FAKE_NVML_SEED={self._seed}")
        return ("env", *words, sys.executable, "-P", "-m", "steward.adapters.node.nvml_child")

    def say(self, *lines: str) -> None:
        self._script.write_text("".join(f"{line}\n" for line in lines))

    def become(self, machine: str) -> None:
        """The GPUs of another machine."""
        self._seed.write_text(machine)
