"""Which backend a bed is made with: the only place that chooses."""

import json
from pathlib import Path

from steward.testbed.bed import Backend, Bed, BedError, BedSpec
from steward.testbed.bed_paths import MANIFEST
from steward.testbed.docker import DockerBed
from steward.testbed.local import LocalBed


def make(spec: BedSpec) -> Bed:
    """A bed that is not up yet. Raises BedError for what the backend cannot be."""
    if spec.backend is Backend.LOCAL:
        return LocalBed(spec)
    if spec.fixed:
        raise BedError("fixed machines are for the local backend; use --backend local")
    return DockerBed(spec)


def find(directory: Path) -> Bed:
    """The bed that was brought up in `directory`. Raises BedError when there is none."""
    try:
        entry = json.loads((directory / MANIFEST).read_text())
    except FileNotFoundError:
        raise BedError(f"no bed in {directory}; `steward testbed up --dir {directory}` makes one") from None
    return make(BedSpec(dir=directory, backend=Backend(entry["spec"]["backend"])))
