"""The signatures of the kernel log, in one table for each family. A new signature is a row of its family's table."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from steward.checks.check import Judgement, Repeat, failed, passed
from steward.checks.xid import NVLINK_AGAIN, Nvlink5, judge_nvlink5, judge_recovery, judge_sxid, judge_xid, xid_repeat
from steward.model.health import Advice, Scope, Severity

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
DISK = r"(?!loop|sr\d|fd\d|zram|ram\d|nbd)[\w!-]{2,32}"
"""A disk of the node, not a device that a user can attach (images, floppies)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The meaning of one line. `check` is the finding's id; `subject` is the device or mount that the line is about.

    `weight` is how many events the line itself counts; `clears` is the check whose event about the same subject ends.
    """

    check: str
    subject: str
    verdict: Judgement
    repeat: Repeat | None = None
    weight: int = 1
    clears: str = ""


Read = Callable[["re.Match[str]", str], Judgement]
"""(match, the line as shown to people) -> verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A pattern of kernel-log lines, and how to judge a line that matches.

    `subject` and `weight` name groups of the pattern. `about`, `label` and `repeat_of`, where given, make the subject,
    the finding's name and its repeat rule out of the whole match.
    """

    name: str
    pattern: "re.Pattern[str]"
    read: Read
    subject: str = ""
    repeat: Repeat | None = None
    about: Callable[["re.Match[str]"], str] | None = None
    label: Callable[["re.Match[str]"], str] | None = None
    repeat_of: Callable[["re.Match[str]"], Repeat | None] | None = None
    weight: str = ""
    clears: str = ""


def same_judgement(severity: Severity, advice: Advice, scope: Scope) -> Read:
    """Return a reader that judges every line the same; INFO is reported and is no failure."""

    def read(match: "re.Match[str]", line: str) -> Judgement:
        return passed(line) if severity is Severity.INFO else failed(line, severity, advice, scope=scope)

    return read


def row(
    name: str,
    pattern: str,
    severity: Severity,
    advice: Advice = Advice.NONE,
    *,
    subject: str = "dev",
    scope: Scope = Scope.NODE,
    repeat: Repeat | None = None,
    weight: str = "",
    clears: str = "",
) -> Signature:
    """Return a signature that judges every line it matches the same."""
    return Signature(
        name=name,
        pattern=re.compile(pattern),
        read=same_judgement(severity, advice, scope),
        subject=subject,
        repeat=repeat,
        weight=weight,
        clears=clears,
    )


def report_only(name: str, pattern: str, *, subject: str = "dev", clears: str = "") -> Signature:
    """Return a signature of lines that are reported and never acted on."""
    return row(name, pattern, Severity.INFO, subject=subject, clears=clears)


_FATAL, _DEGRADED, _SUSPECT, _INFO = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO
_REPLACE, _REBOOT, _NONE = Advice.REPLACE, Advice.REBOOT, Advice.NONE

# NVIDIA's GPUs and switches, AMD's GPUs, Trainium.

_XID = r"NVRM: Xid \((?:PCI:)?(?P<bdf>[0-9a-fA-F:.]{5,20})\): "
_CARD = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
_BY = r",(?: pid=[^,]{0,40},)?(?: name=.{0,60}?,)? {1,4}"
"""The process that an Xid names. A user chooses its name: 15 bytes, each shown as at most four characters."""


def _xid_label(match: "re.Match[str]") -> str:
    return f"xid{match['xid']}"


def _nvlink5(match: "re.Match[str]") -> Nvlink5:
    return Nvlink5(
        code=int(match["xid"]),
        unit=match["unit"],
        is_fatal=match["word"] == "Fatal",
        link=match["link"],
        info=int(match["w0"], 16),
        status=int(match["w1"] or "0", 16),
    )


GPU: tuple[Signature, ...] = (
    Signature(
        name="xid154",
        pattern=re.compile(
            _XID + r"154,.{0,120}?GPU recovery action changed from 0x[0-9a-fA-F]{1,8} \([^()]{0,60}\)"
            r" to 0x[0-9a-fA-F]{1,8} \((?P<act>[^()]{1,60})\)"
        ),
        read=lambda match, line: judge_recovery(match["act"], line),
        subject="bdf",
    ),
    Signature(
        name="xid",
        pattern=re.compile(
            _XID + r"(?P<xid>14[4-9]|150)" + _BY + r"(?P<unit>[A-Z][A-Z0-9_/]{1,40}) {1,8}"
            r"(?P<word>Fatal|Nonfatal) {1,8}XC ?[0-9] {1,8}i ?\d{1,3} {1,8}Link {1,8}(?P<link>-?\d{1,3})"
            r" [(\[](?P<w0>0x[0-9a-fA-F]{1,8})(?: (?P<w1>0x[0-9a-fA-F]{1,8}))?"
        ),
        read=lambda match, line: replace(judge_nvlink5(_nvlink5(match), line), hardware=match["bdf"]),
        label=_xid_label,
        about=lambda match: f"{match['bdf']} link {int(match['link'])}",
        repeat_of=lambda match: NVLINK_AGAIN if _nvlink5(match).counts else None,
    ),
    Signature(
        name="xid",
        pattern=re.compile(_XID + r"(?P<xid>\d{1,4})\b"),
        read=lambda match, line: judge_xid(int(match["xid"]), line),
        label=_xid_label,
        subject="bdf",
        repeat_of=lambda match: xid_repeat(int(match["xid"])),
    ),
    Signature(
        name="xid79",
        pattern=re.compile(
            rf"NVRM: (?:The NVIDIA )?(?:GPU )?(?:at )?(?:(?:PCI:)?(?P<bdf>{_CARD})(?:\.[0-9a-f])?:? )?"
            r".{0,60}fallen off the bus"
        ),
        read=lambda match, line: judge_xid(79, line),
        subject="bdf",
    ),
    Signature(
        name="sxid",
        pattern=re.compile(
            r"nvidia-nvswitch\d{1,3}: SXid \(PCI:(?P<bdf>[0-9a-fA-F:.]{5,20})\): (?P<sxid>\d{5}), "
            r"(?P<word>Fatal|Non-fatal)"
        ),
        read=lambda match, line: judge_sxid(int(match["sxid"]), match["word"] == "Fatal", line),
        label=lambda match: f"sxid{match['sxid']}",
        subject="bdf",
    ),
    row("gpu_init", rf"NVRM: (?:GPU )?(?:(?P<dev>{BDF}): )?.{{0,60}}(?:RmInitAdapter|rm_init_adapter) failed", _FATAL,
        Advice.REBOOT),
    report_only("gpu_peermem", r"nvidia-peermem .{0,120}invalid context", subject=""),
    row("amd_ras_ue", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}?\b[1-9]\d{{0,9}} uncorrectable (?:hardware )?errors? "
        r"detected", _DEGRADED, Advice.RESET_GPU),
    row("amd_reset_failed", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}GPU reset(?:\(\d{{1,6}}\))? (?:failed|end with ret = -)",
        _DEGRADED, Advice.REBOOT),
    report_only("amd_reset", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}GPU reset(?:\(\d{{1,6}}\))? (?:begin|succeeded)"),
    row("neuron_hw", r"(?:neuron.{0,100}[ :])?NEURON_HW_ERR=(?:(?:SRAM|NC|HBM)_UNCORRECTABLE_ERROR|DMA_ERROR)",
        _DEGRADED, Advice.REPLACE, subject=""),
)  # fmt: skip


# Processor, memory, PCIe, and the kernel itself.

_UNCORRECTED = 1 << 61
"""The bit in a machine check bank's status for an error that the hardware could not correct."""
_STUCK = Repeat(times=3, within_s=600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_AER = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_DIMM = Repeat(times=101, within_s=86400.0, severity=_SUSPECT, advice=Advice.NONE, gap_s=0.0)


def _mce(match: "re.Match[str]", line: str) -> Judgement:
    """Judge a machine check: without "Exception" in the line, the bank's status says whether it was corrected."""
    status = int(match["status"] or "0", 16)
    if match["exception"] or status & _UNCORRECTED:
        return failed(line, _FATAL, Advice.REPLACE)
    return passed(f"corrected: {line}")


CPU: tuple[Signature, ...] = (
    Signature(
        name="mce",
        pattern=re.compile(
            r"mce: \[Hardware Error\]: (?:CPU \d{1,5}: )?Machine Check(?P<exception> Exception)?"
            r"(?:: [0-9a-fA-F]{1,16} Bank \d{1,3}: (?P<status>[0-9a-fA-F]{1,16}))?"
        ),
        read=_mce,
    ),
    row("mce", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: fatal", _FATAL, Advice.REPLACE, subject=""),
    row("mce", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: recoverable", _DEGRADED, Advice.REPLACE,
        subject=""),
    report_only("mce_corrected", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: corrected"
         r"|mce: \[Hardware Error\]: Machine check events logged", subject=""),
    row("edac_ue", r"EDAC (?P<dev>MC\d{1,4}): (?:[1-9]\d{0,9} )?UE .{0,600}?\bpage[: ]0x[0-9a-f]", _FATAL,
        Advice.REPLACE),
    row("edac_ue", r"EDAC (?P<dev>DEVICE\d{1,4}): UE: .{1,160}? instance: ", _FATAL, Advice.REPLACE),
    row("edac_ce", r"EDAC MC\d{1,4}: (?P<n>[1-9]\d{0,5}) CE (?:.{0,80}? )?on (?P<dev>[\w#:.-]{1,64}) ", _INFO,
        repeat=_DIMM, weight="n"),
    row("mem_poison", r"Memory failure: 0x[0-9a-f]{1,16}: ", _DEGRADED, Advice.REPLACE, subject=""),
    row("pcie_aer_fatal", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?(?:(?:Multiple )?Uncorrect(?:ed|able)"
        r" \(Fatal\)|PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\))", _DEGRADED, Advice.REBOOT),
    row("pcie_aer_nonfatal", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?PCIe Bus Error: "
        r"severity=Uncorrect(?:ed|able) \(Non-Fatal\)", _INFO, repeat=_AER),
    report_only("pcie_aer_corrected", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?PCIe Bus Error: "
        r"severity=Corrected"),
    row("pcie_width", rf"(?:mlx5_core|nvidia) (?P<dev>{BDF}): [\d.]{{1,12}} Gb/s available PCIe bandwidth, limited by",
        _SUSPECT),
    report_only("pcie_width_disk", rf"nvme (?P<dev>{BDF}): [\d.]{{1,12}} Gb/s available PCIe bandwidth, limited by"),
    report_only("pcie_slot_power", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:Detected )?insufficient power on the PCIe "
        r"slot \(\d{1,5}W\)"),
    row("soft_lockup", r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#\d{1,5} stuck for \d{1,9}s!", _INFO, subject="",
        repeat=_STUCK),
    row("hard_lockup", r"(?:NMI )?[Ww]atchdog: (?:Watchdog detected )?hard LOCKUP on cpu \d{1,5}"
        r"|Watchdog detected hard LOCKUP", _DEGRADED, Advice.REBOOT, subject=""),
    row("rcu_stall", r"(?:rcu: )?(?:INFO: )?rcu_\w{1,16} (?:detected stalls on CPUs|self-detected stall)", _INFO,
        subject="", repeat=_STUCK),
    report_only("task_hung", r"INFO: task .{1,16}?:\d{1,10} blocked for more than \d{1,9} seconds", subject=""),
    row("panic", r"Kernel panic - not syncing", _FATAL, Advice.REBOOT, subject=""),
    row("oops", r"BUG: (?:unable to handle|kernel NULL pointer)", _DEGRADED, Advice.REBOOT, subject=""),
    # The formats of x86, arm64 and POWER. "Oops: 0000 [#1]" alone may be the name of a process.
    row("oops", r"(?:Oops: |general protection fault[,:] )(?:[^\[]{1,120} )?[0-9a-f]{4} \[#\d{1,6}\] {1,2}"
        r"(?:PREEMPT\S{0,16} )?SMP\b", _DEGRADED, Advice.REBOOT, subject=""),
    row("oops", r"Internal error: [^\[]{1,80}: [0-9a-f]{8,16} \[#\d", _DEGRADED, Advice.REBOOT, subject=""),
    row("oops", r"Oops: Kernel access of bad area, sig: \d{1,2} \[#\d", _DEGRADED, Advice.REBOOT, subject=""),
)  # fmt: skip


# Disks and file systems. Trouble of a shared file system (NFS, Lustre) is never one node's fault.

_CLUSTER = Scope.CLUSTER
_TIMEOUTS = Repeat(times=2, within_s=3600.0, severity=_DEGRADED, advice=_REPLACE)
_IO_ERRORS = Repeat(times=3, within_s=600.0, severity=_DEGRADED, advice=_REPLACE)
_FRAME = r" +(?:\[<[0-9a-f]{1,16}>\] )?(?:\? )?"
"""The start of a line of a stack trace: a hung task alone proves nothing, but the function in which it hangs does."""

STORAGE: tuple[Signature, ...] = (
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
    report_only("nfs_ok", r"nfs: server (?P<dev>\S{1,64}) OK", clears="nfs_stall"),
    row("nfs_hang", _FRAME + r"nfs_(?:wb_all|lock_and_join_requests|page_async_flush|writepages_callback)\+0x",
        _SUSPECT, subject="", scope=_CLUSTER),
    row("lustre_hang", _FRAME + r"(?:ptlrpc|osc|ll)_\w{1,48}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} "
        r"\[(?:ptlrpc|osc|lustre)\]", _SUSPECT, subject="", scope=_CLUSTER),
    row("lustre_lbug", r"LustreError: [\w.:()/-]{1,200} LBUG", _DEGRADED, _REBOOT, subject=""),
    row("lustre_evict", r"LustreError: [\w.:()/ -]{1,200}?(?:This client was evicted by|evicting client)", _SUSPECT,
        subject="", scope=_CLUSTER),
    row("lustre_lost", r"Lustre: (?:[\w.:()/-]{1,160} )?(?P<dev>[\w.-]{1,64}): Connection to \S{1,64} .{0,80}was lost",
        _SUSPECT, scope=_CLUSTER),
    report_only("lustre_back", r"Lustre: (?:[\w.:()/-]{1,160} )?(?P<dev>[\w.-]{1,64}): Connection restored to",
         clears="lustre_lost"),
)  # fmt: skip


# Network adapters: InfiniBand and Ethernet (mlx5), EFA, links. For the present state of a link, sysfs is better.

_TX = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_EFA = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REPLACE)
_MLX5 = rf"mlx5_core (?P<dev>{BDF}): "
_LINK = r"(?:ib\w{1,12}|en\w{1,12}|eth\d{1,3}|hsn\d{1,3}|bond\d{1,3})"

NET: tuple[Signature, ...] = (
    row("ib_cmd_timeout", _MLX5 + r".{0,160}timeout\. Will cause a leak of a command resource", _DEGRADED,
        Advice.REBOOT),
    row("ib_fw_dead", _MLX5 + r".{0,160}?(?:health poll failed|device's health compromised"
        r"|[Uu]nrecoverable (?:hardware )?error)", _DEGRADED, Advice.REBOOT),
    report_only("ib_temp", _MLX5 + r"Port module event.{0,60}High Temperature"),
    report_only("ib_unplug", _MLX5 + r".{0,60}[Cc]able (?:unplugged|error)"),
    row("net_tx_timeout", r"NETDEV WATCHDOG: (?P<dev>\S{1,15}) \([^)]{1,32}\): transmit queue", _INFO, repeat=_TX),
    row("net_tx_timeout", r"(?:\S{1,32} \S{1,20} )?(?P<dev>[\w.-]{1,15})(?: \([^)]{1,32}\))?: NETDEV WATCHDOG: "
        r"CPU: \d{1,5}: transmit queue", _INFO, repeat=_TX),
    report_only("net_carrier", rf"(?:[\w-]{{1,24}} {BDF}:? )?(?P<dev>{_LINK}): (?:[Ll]ost carrier|(?:NIC )?[Ll]ink is "
        r"[Dd]own|[Ll]ink down)"),
    row("efa_timeout", rf"efa (?P<dev>{BDF}):? .{{0,120}}?"
        r"(?:Completion timeout|[Kk]eep ?[Aa]live [\w ]{0,40}timeout)", _INFO, repeat=_EFA),
    report_only("efa_cmd", rf"efa (?P<dev>{BDF}):? .{{0,60}}?Failed to"),
)  # fmt: skip


# Memory that ran out, full tables, crashed programs: mostly a job's own doing.

_SIZES = r"total-vm:\d{1,12}kB, anon-rss:\d{1,12}kB, file-rss:\d{1,12}kB, shmem-rss:\d{1,12}kB"
_JOB = re.compile(r"/job_(\d{1,10})(?:/|$)")


def _cgroup(match: "re.Match[str]", line: str) -> Judgement:
    job = _JOB.search(match["cgroup"])
    whose = f"job {job[1]}" if job else f"the group {match['cgroup'][:80]}"
    return passed(f"{whose} ran over its memory limit: {line}")


SYSTEM: tuple[Signature, ...] = (
    # The memory counts and the user id follow the name at once: a name that a user chose has 15 bytes, too few to fake
    # them.
    row("oom_daemon", rf"Out of memory: Killed process \d{{1,10}} \((?P<dev>slurmd)\) {_SIZES}, UID:0 ",
        Severity.DEGRADED, Advice.RESTART_SERVICE),
    row("oom_daemon", rf"Out of memory: Killed process \d{{1,10}} \((?P<dev>steward-agent)\) {_SIZES}, UID:0 ",
        Severity.DEGRADED, Advice.REBOOT),
    report_only("oom_node", r"Out of memory: Kill(?:ed)? process \d{1,10} \(", subject=""),
    Signature(
        name="oom_cgroup",
        pattern=re.compile(r"oom-kill:constraint=CONSTRAINT_MEMCG,.{0,400}?task_memcg=(?P<cgroup>[^,]{1,400}),task="),
        read=_cgroup,
    ),
    report_only("file_max", r"VFS: file-max limit \d{1,20} reached", subject=""),
    report_only("conntrack_full", r"nf_conntrack: (?:nf_conntrack: )?.{0,40}table full, dropping packet", subject=""),
)  # fmt: skip

_BYTE = r"(?>\\x[0-9a-f]{2}|.)"
"""A byte of a name: /dev/kmsg shows an unprintable byte as four characters."""
_TOLD_OF_NAME = (
    r"\[\d{1,10}\]:? | ?\(\d{1,10}\):? | \(pid \d{1,10}\) |/\d{1,10}:? "
    r"|: (?:page allocation |vmalloc|vmemmap alloc |Corrupted page table |attempt to access beyond end of device"
    r"|sending ioctl |calling unsupported |using deprecated |\d{1,10} output lines suppressed"
    r"|The scan_unevictable_pages )"
    r"| (?:invoked oom-killer|cpuset=|wrote to |calls setitimer|uses obsolete |uses old |used emulated "
    r"|using unsupported |sent an empty control message)"
)
_FILE = r".{1,1000}?: potentially unexpected fatal signal "
PROGRAM_SAID = re.compile(f"{_BYTE}{{1,15}}?(?:{_TOLD_OF_NAME})|{_FILE}")
"""A line that begins with a name that a user chose, of a process (15 bytes) or of its program. It may begin like any of
our signatures, and may hold the name of a user's file further on."""
PROGRAMS: tuple[Signature, ...] = (
    report_only(
        "nccl_segfault", r".{1,15}?\[\d{1,10}\]: segfault at [0-9a-f]{1,16} ip .{0,80} in libnccl\.so", subject=""
    ),
)
