"""A test bed whose slurm.conf is another one for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steward_bed.bed import Bed


@contextmanager
def changed_conf(bed: Bed, change: Callable[[str], str]) -> Iterator[None]:
    """Slurm runs by what `change` makes of slurm.conf, and afterwards by what stood there before."""
    conf = bed.spec.dir / "etc" / "slurm.conf"
    before = conf.read_text()
    changed = change(before)
    assert changed != before
    try:
        conf.write_text(changed)
        bed.run(["scontrol", "reconfigure"])
        yield
    finally:
        conf.write_text(before)
        bed.run(["scontrol", "reconfigure"])
