"""`[[machine_types]]`: the machine types of a site, and the built-in ones of the published cluster API.

Gres and features of the built-in ones are empty: the site's gres.conf and slurm.conf define them.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pydantic import Field

from steward.model.section import Section
from steward.model.setting_types import Words


class MachineType(Section):
    """A machine type of this site; it replaces a built-in `ml.*` type of the same name."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        examples=["ml.g6.12xlarge"],
        description="Name that InstanceType takes.",
    )
    cpus: int = Field(default=0, ge=0, le=100_000, description="Logical CPUs; 0: not said.")
    memory_mb: int = Field(default=0, ge=0, description="Memory in MiB; 0: not said.")
    gpus: int = Field(default=0, ge=0, le=1000, description="Accelerators.")
    gres: str = Field(default="", max_length=200, description="Slurm's Gres, such as `gpu:h100:8`.")
    features: Words = Field(default=(), description="Slurm features.")


_MIB_PER_GIB = 1024

_TABLE = """
p4d 24xlarge=96/1152/8
p4de 24xlarge=96/1152/8
p5 48xlarge=192/2048/8 4xlarge=16/256/1
p5e 48xlarge=192/2048/8
p5en 48xlarge=192/2048/8
p6-b200 48xlarge=192/2048/8
p6-b300 48xlarge=192/4096/8
p6e-gb200 36xlarge=144/960/4
trn1 32xlarge=128/512/16
trn1n 32xlarge=128/512/16
trn2 3xlarge=12/128/1 48xlarge=192/2048/16
g4dn xlarge=4/16/1 2xlarge=8/32/1 4xlarge=16/64/1 8xlarge=32/128/1 12xlarge=48/192/4 16xlarge=64/256/1
g5 xlarge=4/16/1 2xlarge=8/32/1 4xlarge=16/64/1 8xlarge=32/128/1 12xlarge=48/192/4 16xlarge=64/256/1
g5 24xlarge=96/384/4 48xlarge=192/768/8
g6 xlarge=4/16/1 2xlarge=8/32/1 4xlarge=16/64/1 8xlarge=32/128/1 12xlarge=48/192/4 16xlarge=64/256/1
g6 24xlarge=96/384/4 48xlarge=192/768/8
g6e xlarge=4/32/1 2xlarge=8/64/1 4xlarge=16/128/1 8xlarge=32/256/1 12xlarge=48/384/4 16xlarge=64/512/1
g6e 24xlarge=96/768/4 48xlarge=192/1536/8
gr6 4xlarge=16/128/1 8xlarge=32/256/1
g7e 2xlarge=8/64/1 4xlarge=16/128/1 8xlarge=32/256/1 12xlarge=48/512/2 24xlarge=96/1024/4 48xlarge=192/2048/8
c5 large=2/4 xlarge=4/8 2xlarge=8/16 4xlarge=16/32 9xlarge=36/72 12xlarge=48/96 18xlarge=72/144 24xlarge=96/192
c5n large=2/5 2xlarge=8/21 4xlarge=16/42 9xlarge=36/96 18xlarge=72/192
m5 large=2/8 xlarge=4/16 2xlarge=8/32 4xlarge=16/64 8xlarge=32/128 12xlarge=48/192 16xlarge=64/256 24xlarge=96/384
t3 medium=2/4 large=2/8 xlarge=4/16 2xlarge=8/32
i3en large=2/16 xlarge=4/32 2xlarge=8/64 3xlarge=12/96 6xlarge=24/192 12xlarge=48/384 24xlarge=96/768
r5d 16xlarge=64/512
"""
"""FAMILY SIZE=CPUS/GIB[/ACCELERATORS] ..."""

_SIZES = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
_INTEL_6 = f"{_SIZES} 24xlarge 32xlarge"
_INTEL_7 = f"{_SIZES} 24xlarge 48xlarge"
_ARM = f"medium {_SIZES}"
_REGULAR = (
    (("c6i", 2), ("m6i", 4), ("r6i", 8), _INTEL_6),
    (("m7i", 4), ("r7i", 8), _INTEL_7),
    (("c6a", 2), ("m6a", 4), f"{_INTEL_6} 48xlarge"),
    (("c6g", 2), ("c7g", 2), ("m6g", 4), ("m7g", 4), _ARM),
    (("c8g", 2), ("m8g", 4), f"{_ARM} 24xlarge 48xlarge"),
    (("c8a", 2), ("m8a", 4), "16xlarge"),
)
"""Families whose sizes follow one rule: (family, GiB for each CPU) ..., sizes."""

_SMALL = {"medium": 1, "large": 2, "xlarge": 4}
_UNPUBLISHED = tuple(f"g7.{size}" for size in ["2xlarge", "4xlarge", "8xlarge", "12xlarge", "24xlarge", "48xlarge"])
"""Types of the API whose figures are not published: all zero."""


def _irregular() -> Iterator[MachineType]:
    for line in _TABLE.strip().splitlines():
        family, *entries = line.split()
        for entry in entries:
            size, _, figures = entry.partition("=")
            cpus, gib, *gpus = (int(number) for number in figures.split("/"))
            yield _made(f"{family}.{size}", cpus, gib, sum(gpus))


def _regular() -> Iterator[MachineType]:
    for *families, sizes in _REGULAR:
        for family, gib_per_cpu in families:
            for size in str(sizes).split():
                cpus = _SMALL.get(size) or 4 * int(size.removesuffix("xlarge"))
                yield _made(f"{family}.{size}", cpus, cpus * int(gib_per_cpu), 0)


def _made(name: str, cpus: int, gib: int, gpus: int) -> MachineType:
    return MachineType(name=f"ml.{name}", cpus=cpus, memory_mb=gib * _MIB_PER_GIB, gpus=gpus)


def _all() -> Iterator[MachineType]:
    yield from _irregular()
    yield from _regular()
    yield from (_made(name, 0, 0, 0) for name in _UNPUBLISHED)


BUILT_IN: Mapping[str, MachineType] = MappingProxyType({each.name: each for each in _all()})
"""The built-in types by name, `ml.` included."""
