"""A node that has less memory than Slurm was told."""

import os
import re
from contextlib import AbstractContextManager

from steward_bed.bed import Bed
from tests.e2e.changed_conf import changed_conf


def memory_lost(bed: Bed, node: str) -> AbstractContextManager[None]:
    """slurm.conf says of the node twice what the machine has."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return changed_conf(
        bed, lambda conf: re.sub(rf"(?m)^(NodeName={node} .*RealMemory=)\d+", rf"\g<1>{2 * there}", conf)
    )
