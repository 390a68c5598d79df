"""Differences between Slurm versions for a bed of many nodes on one machine; the only place that knows."""

import re
from dataclasses import dataclass

from steward_bed.bed import BedError

_VERSION = re.compile(r"^\S+ (?P<major>\d+)\.(?P<minor>\d+)\.(?P<micro>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SlurmVersion:
    major: int
    minor: int
    micro: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor:02}.{self.micro}"

    @property
    def release(self) -> tuple[int, int]:
        return self.major, self.minor

    @property
    def wants_all_files(self) -> bool:
        """A slurmctld that was killed before it wrote all its files does not start again ("fatal: No Assoc usage file
        (...) to recover", 26.05.5). It writes that one after five minutes, and when it ends well. 24.11 starts without.
        """
        return self.release > (24, 11)


def parse(text: str) -> SlurmVersion:
    """The answer of `slurmd -V`, for example "slurm-wlm 22.05.8"."""
    match = _VERSION.match(text.strip())
    if match is None:
        raise BedError(f"cannot read a Slurm version in {text.strip()!r}; is this Slurm's slurmd?")
    return SlurmVersion(major=int(match["major"]), minor=int(match["minor"]), micro=int(match["micro"]))


def cgroup_conf(version: SlurmVersion) -> str:
    """A slurmd that needs no usable cgroups.

    23.11 and newer can be told so. Older ones look for a cgroup mount when they choose a plugin by themselves and do
    not start without one; told to use cgroup/v1 they touch no cgroup as long as no other plugin asks for it.
    """
    return "CgroupPlugin=disabled\n" if version.release >= (23, 11) else "CgroupPlugin=cgroup/v1\n"
