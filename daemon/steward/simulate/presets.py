"""Clusters whose faults were counted in public."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from steward.simulate.traces import LLAMA3_SOURCE, RSC1_SOURCE, FaultSource
from steward.simulate.training import Habits

HABITS = Habits(nodes=1, interval_s=240.0, save_s=2.0, durable_s=10.0, start_s=60.0)
"""A large training run that saves in the background: a pause to copy from the GPUs, a while until the copy is written,
and a minute from the script's start to the first step (libraries, NCCL, loading)."""
LONG_RUN = "any:1000,max=1000,stalls=10,backoff=0"
"""What a long run of many nodes should ask for: a fault every few hours is normal for it."""
RECOMMENDED = '[repair]\nmode = "act"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A cluster, its jobs and its faults. `says` tells what the numbers are from."""

    source: FaultSource
    days: float
    jobs: str
    spares: int
    says: str


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "llama3": Preset(
            source=LLAMA3_SOURCE,
            days=54.0,
            jobs="1x2048",
            spares=16,
            says="419 unplanned interruptions of one job of 2,048 nodes in 54 days, by kind as its report counts them",
        ),
        "rsc1": Preset(
            source=RSC1_SOURCE,
            days=30.0,
            jobs="4x128,8x64,16x32,32x8",
            spares=64,
            says="6.50 faults per 1,000 node-days, of kinds as in Llama 3's report; a mix of jobs of our own",
        ),
    }
)
