"""Disks and file systems. What is shared by many nodes (NFS, Lustre) is never one node's fault."""

from steward.checks.kernel_log.signature import DISK, Signature, row, told
from steward.checks.repeat import Repeat
from steward.model.health import Advice, Scope, Severity

_DEGRADED, _SUSPECT = Severity.DEGRADED, Severity.SUSPECT
_REPLACE, _REBOOT, _NONE = Advice.REPLACE, Advice.REBOOT, Advice.NONE
_CLUSTER = Scope.CLUSTER
_TIMEOUTS = Repeat(times=2, within_s=3600.0, severity=_DEGRADED, advice=_REPLACE)
_IO_ERRORS = Repeat(times=3, within_s=600.0, severity=_DEGRADED, advice=_REPLACE)
_FRAME = r" +(?:\[<[0-9a-f]{1,16}>\] )?(?:\? )?"
"""How a line of a stack trace begins: a hung task alone proves nothing, where it hangs does."""

SIGNATURES: tuple[Signature, ...] = (
    row("nvme_dead", r"nvme (?P<dev>nvme\d{1,4}): (?:Disabling device after reset failure|Removing after probe failure"
        r"|controller is down; will reset)", _DEGRADED, _REPLACE),
    row("nvme_timeout", r"nvme (?P<dev>nvme\d{1,4}): I/O [^:]{0,80}timeout, (?:aborting|reset controller)", _SUSPECT,
        repeat=_TIMEOUTS),
    row("nvme_no_path", r"block (?P<dev>nvme\w{1,24}): no available path - failing I/O", _DEGRADED, _REBOOT),
    row("blk_io_error", rf"(?:blk_update_request: )?(?:critical (?:medium|target) error|I/O error), dev "
        rf"(?P<dev>{DISK}), sector \d", _SUSPECT, repeat=_IO_ERRORS),
    row("blk_buffer_io", rf"Buffer I/O error on dev(?:ice)? (?P<dev>{DISK}), logical block", _SUSPECT),
    row("md_fail", r"md/raid[^ ]{0,40}: Disk failure on (?P<dev>[\w!-]{1,32})(?:,| detected)", _DEGRADED, _REPLACE),
    row("remount_ro", rf"EXT4-fs(?: error)? \((?:device )?(?P<dev>{DISK})\): (?:\w{{1,64}}: )?"
        r"[Rr]emounting filesystem read-only", _DEGRADED, _REBOOT),
    row("remount_ro", rf"BTRFS(?:: error| error| info| critical| warning)? \(device (?P<dev>{DISK})"
        r"(?:: state \w{1,12})?\).{0,160}forced readonly$", _DEGRADED, _REBOOT),
    row("ext4_error", rf"EXT4-fs error \(device (?P<dev>{DISK})\)", _DEGRADED, _REBOOT),
    row("xfs_shutdown", rf"XFS \((?P<dev>{DISK})\): .{{0,400}}?"
        r"(?:[Ss]hutting down filesystem|Filesystem has been shut down|metadata I/O error)", _DEGRADED, _REBOOT),
    row("nfs_stall", r"nfs: server (?P<dev>\S{1,64}) not responding", _SUSPECT, scope=_CLUSTER),
    told("nfs_ok", r"nfs: server (?P<dev>\S{1,64}) OK", clears="nfs_stall"),
    row("nfs_hang", _FRAME + r"nfs_(?:wb_all|lock_and_join_requests|page_async_flush|writepages_callback)\+0x",
        _SUSPECT, subject="", scope=_CLUSTER),
    row("lustre_hang", _FRAME + r"(?:ptlrpc|osc|ll)_\w{1,48}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} "
        r"\[(?:ptlrpc|osc|lustre)\]", _SUSPECT, subject="", scope=_CLUSTER),
    row("lustre_lbug", r"LustreError: [\w.:()/-]{1,200} LBUG", _DEGRADED, _REBOOT, subject=""),
    row("lustre_evict", r"LustreError: [\w.:()/ -]{1,200}?(?:This client was evicted by|evicting client)", _SUSPECT,
        subject="", scope=_CLUSTER),
    row("lustre_lost", r"Lustre: (?:[\w.:()/-]{1,160} )?(?P<dev>[\w.-]{1,64}): Connection to \S{1,64} .{0,80}was lost",
        _SUSPECT, scope=_CLUSTER),
    told("lustre_back", r"Lustre: (?:[\w.:()/-]{1,160} )?(?P<dev>[\w.-]{1,64}): Connection restored to",
         clears="lustre_lost"),
)  # fmt: skip
