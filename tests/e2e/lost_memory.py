"""A node that has less memory than Slurm was told."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from steward.testbed.bed import Bed


@contextmanager
def memory_lost(bed: Bed, node: str) -> Iterator[None]:
    """slurm.conf says of the node twice what the machine has."""
    conf = bed.spec.dir / "etc" / "slurm.conf"
    before = conf.read_text()
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    lied = re.sub(rf"(?m)^(NodeName={node} .*RealMemory=)\d+", rf"\g<1>{2 * there}", before)
    assert lied != before
    try:
        conf.write_text(lied)
        bed.run(["scontrol", "reconfigure"])
        yield
    finally:
        conf.write_text(before)
        bed.run(["scontrol", "reconfigure"])
