"""Mount points that the site says must be there."""

import pytest

from steward.checks import mounts
from steward.checks.check import Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome
from steward.model.ids import NodeName
from steward.model.probe import Disk, DiskUsage, Raw, ReadFiles

TABLE = "/dev/nvme0n1p1 / ext4 rw,relatime 0 0\n/dev/md0 /local\\040scratch xfs rw 0 0\nnas:/home /home nfs4 rw 0 0\n"
ROOT = {"/": Disk(total=10, free=5, inodes=0, inodes_free=0, read_only=False)}


def judged(table: str | None, *present: str) -> Judgement:
    limits = limits_of({"mounts.present": present})
    facts = Facts(node=NodeName("n1"), limits=limits)
    assert mounts.MOUNTS.probes(facts) == (DiskUsage(paths=("/",)), ReadFiles(paths=("/proc/mounts",)))
    return mounts.MOUNTS.verdict((Raw(disks=ROOT), Raw(files={"/proc/mounts": table})), facts, Past())


def test_what_is_mounted_passes_whatever_its_name() -> None:
    verdict = judged(TABLE, "/local scratch", "/home")
    assert (verdict.outcome, verdict.text) == (Outcome.PASSED, "writable: /; mounted: /local scratch, /home")


def test_a_folder_that_is_there_without_its_mount_asks_for_a_reboot() -> None:
    verdict = judged(TABLE, "/home", "/scratch")
    assert (verdict.outcome, verdict.advice, verdict.text) == (Outcome.FAILED, Advice.REBOOT, "not mounted: /scratch")


@pytest.mark.parametrize("table", [None, TABLE + "x /y z rw 0 0\n" * 5000], ids=["no table", "a table that may be cut"])
def test_a_table_that_cannot_be_trusted_says_nothing(table: str | None) -> None:
    assert judged(table, "/scratch").outcome is Outcome.UNKNOWN


def test_the_table_is_not_read_where_nobody_asks() -> None:
    facts = Facts(node=NodeName("n1"), limits=Limits())
    assert mounts.MOUNTS.probes(facts) == (DiskUsage(paths=("/",)),)
