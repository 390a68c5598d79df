"""Memory that ran out, tables that are full, and programs that crashed: mostly a job's own doing."""

import re

from steward.checks.check import Verdict, passed
from steward.checks.kernel_log.signature import Signature, row, told
from steward.model.health import Advice, Severity

_SIZES = r"total-vm:\d{1,12}kB, anon-rss:\d{1,12}kB, file-rss:\d{1,12}kB, shmem-rss:\d{1,12}kB"
_JOB = re.compile(r"/job_(\d{1,10})(?:/|$)")


def _cgroup(match: "re.Match[str]", line: str) -> Verdict:
    job = _JOB.search(match["cgroup"])
    whose = f"job {job[1]}" if job else f"the group {match['cgroup'][:80]}"
    return passed(f"{whose} ran over its memory limit: {line}")


SIGNATURES: tuple[Signature, ...] = (
    # The kernel's own count of the process's memory and its user follow the name at once, so that nobody gets them
    # there with a name that he chose (15 bytes).
    row("oom_daemon", rf"Out of memory: Killed process \d{{1,10}} \((?P<dev>slurmd)\) {_SIZES}, UID:0 ",
        Severity.DEGRADED, Advice.RESTART_SERVICE),
    row("oom_daemon", rf"Out of memory: Killed process \d{{1,10}} \((?P<dev>steward-agent)\) {_SIZES}, UID:0 ",
        Severity.DEGRADED, Advice.REBOOT),
    told("oom_node", r"Out of memory: Kill(?:ed)? process \d{1,10} \(", subject=""),
    Signature(
        name="oom_cgroup",
        pattern=re.compile(r"oom-kill:constraint=CONSTRAINT_MEMCG,.{0,400}?task_memcg=(?P<cgroup>[^,]{1,400}),task="),
        read=_cgroup,
    ),
    told("file_max", r"VFS: file-max limit \d{1,20} reached", subject=""),
    told("conntrack_full", r"nf_conntrack: (?:nf_conntrack: )?.{0,40}table full, dropping packet", subject=""),
)  # fmt: skip

_BYTE = r"(?>\\x[0-9a-f]{2}|.)"
"""Of a name: /dev/kmsg shows one that is not printable as four characters."""
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
"""A line that begins with the name of a process (15 bytes) or of what it runs, which its user chose: it may begin like
any of ours, and the name of a file (a user's as well) comes further on."""
PROGRAMS: tuple[Signature, ...] = (
    told("nccl_segfault", r".{1,15}?\[\d{1,10}\]: segfault at [0-9a-f]{1,16} ip .{0,80} in libnccl\.so", subject=""),
)
