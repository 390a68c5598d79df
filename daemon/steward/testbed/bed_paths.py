"""The paths that are the same in the directory of every bed, whatever it is made of."""

from dataclasses import dataclass
from pathlib import Path

MANIFEST = "bed.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedPaths:
    """Paths below one directory."""

    root: Path

    @property
    def manifest(self) -> Path:
        return self.root / MANIFEST

    @property
    def slurm_conf(self) -> Path:
        return self.root / "etc" / "slurm.conf"

    @property
    def steward_toml(self) -> Path:
        return self.root / "etc" / "steward.toml"

    @property
    def shared(self) -> Path:
        return self.root / "shared"

    @property
    def gpus(self) -> Path:
        """The pretended GPU driver; absent in a bed without GPUs."""
        return self.root / "gpu"

    @property
    def wrappers(self) -> Path:
        """First in stewardd's search path; empty but for a fault."""
        return self.root / "wrappers"
