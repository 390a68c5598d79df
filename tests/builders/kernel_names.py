"""Where the kernel (looked through: 4.18, 5.15, 6.13) prints the name of a process, which its user chose: here {}."""

SIZES = "total-vm:100kB, anon-rss:9kB, file-rss:8kB, shmem-rss:0kB, UID:1000 pgtables:100kB oom_score_adj:0"
GFP = "mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO), nodemask=(null),cpuset=/,mems_allowed=0-1"

FIRST = (
    "{}: page allocation failure: order:4, " + GFP,
    "{}: page allocation failure. order:4, mode:0x40d0",
    "{}: page allocation stalls for 10020ms, order:0, " + GFP,
    "{}: vmalloc error: size 1048576, failed to allocate pages, " + GFP,
    "{}: vmalloc error: size 1048576, page order 0, failed to allocate pages, " + GFP,
    "{}: vmalloc size 1048576 allocation failure: page array size 2048 allocation failed, " + GFP,
    "{}: vmalloc: allocation failure: 1048576 bytes, " + GFP,
    "{}: vmalloc: allocation failure, allocated 4096 of 1048576 bytes, " + GFP,
    "{}: vmemmap alloc failure: order:9, " + GFP,
    "{}: Corrupted page table at address 7f55d0000000",
    r"{}: attempt to access beyond end of device\x0asda1: rw=0, want=8, limit=4",
    "{}: potentially unexpected fatal signal 11.",
    "python3.11: {}: potentially unexpected fatal signal 11.",
    "{}: sending ioctl 5326 to a partition!",
    "{}: calling unsupported SCSI_IOCTL_SEND_COMMAND",
    "{}: using deprecated /proc/sgi_uv/archtype, use /sys/firmware/sgi_uv/archtype",
    "{}: 12 output lines suppressed due to ratelimiting",
    "{}: The scan_unevictable_pages sysctl/node-interface has been disabled for lack of a legitimate use case.",
    "{} invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
    "{} cpuset=step_0 mems_allowed=0-1",
    r"{} wrote to ip_forward when file position was not 0!\x0aThis will not be supported in the future.",
    "{} calls setitimer() with new_value NULL pointer. Misfeature support will be removed",
    "{} uses obsolete (PF_INET,SOCK_PACKET)",
    "{} uses old SIOCAX25GETINFO",
    "{} sent an empty control message without MSG_MORE.",
    "{} using unsupported default IPA limit, upgrade your VMM",
    "{} used emulated mfcr instruction",
    "{}[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd6c2b0c60 error 6 in x[401000+1000]",
    "{}[4711]: unhandled exception: SP/PC alignment, ESR 0x000000008a000000, in x[400000+1000]",
    "{}[4711]: memfd_create() called without MFD_EXEC or MFD_NOEXEC_SEAL set",
    "{}[4711]: bad frame in handle_rt_signal64: 0 nip 0 lr 0",
    "{}[4711] bad frame in rt_sigreturn frame:0 ip:0 sp:0 orax:ffffffffffffffff in x[401000+1000]",
    "{}[4711] vsyscall attempted with vsyscall=none ip:ffffffffff600400 cs:33 sp:0 ax:0 si:0 di:0",
    "{}[4711] control protection ip:401136 sp:7ffd6c2b0c60 ssp:0 error:1(near ret) in x[401000+1000]",
    "{}[4711] is installing a program with bpf_probe_write_user helper that may corrupt user memory!",
    "{}(4711): READ block 8 on sda1 (8 sectors)",
    "{}(4711): Attempt to set a LOCK_MAND lock via flock(2). This support has been removed and the request ignored.",
    "{} (4711): drop_caches: 3",
    "{} (4711): /proc/4711/oom_adj is deprecated, please use /proc/4711/oom_score_adj instead.",
    "{} (4711): attempted to duplicate a private mapping with mremap.  This is not supported.",
    "{} (4711) used greatest stack depth: 11432 bytes left",
    "{} (4711) used obsolete PPPIOCDETACH ioctl",
    "{} (pid 4711) is setting deprecated v1 encryption policy; recommend upgrading to v2.",
    "{}/4711: potentially unexpected fatal signal 11.",
    "{}/4711: reached RLIMIT_SIGPENDING, dropped signal 34",
    "{}/4711 is trying to acquire lock:",
    "{}/4711 is leaving the kernel with locks still held!",
    "{}/4711 just changed the state of lock:",
    "{}/4711 [HC0[0]:SC0[0]:HE1:SE1] takes:",
)
"""At the line's start."""

WITHIN = (
    "INFO: task {}:4711 blocked for more than 120 seconds.",
    "task:{} state:D stack:0     pid:4711  ppid:4710   flags:0x00000002",
    "CPU: 3 PID: 4711 Comm: {} Tainted: G           OE     5.15.0-91-generic #101-Ubuntu",
    "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [{}:4711]",
    "BUG: Bad page map in process {}  pte:800000012345 pmd:123456067",
    "BUG: scheduling while atomic: {}/4711/0x00000002",
    "note: {}[4711] exited with irqs disabled",
    "traps: {}[4711] general protection fault ip:55e sp:7ff error:0 in x[400000+1000]",
    "umip: {}[4711] ip:401136 sp:7ffd6c2b0c60: SGDT instruction cannot be used by applications.",
    "x86/split lock detection: #AC: {}/4711 took a split_lock trap at address: 0x401136",
    "mmap: {} (4711): VmData 8192 exceed data ulimit 4096. Update limits or use boot option ignore_rlimit_data.",
    "MCE: Killing {}:4711 due to hardware memory corruption fault at 7f55d0000000",
    "Memory failure: 0x1234: Sending SIGBUS to {}:4711 due to hardware memory corruption",
    "Memory failure: Unable to find user space address 1234 in {}",
    "Out of memory: Killed process 4711 ({}) " + SIZES,
    "Memory cgroup out of memory: Killed process 4711 ({}) " + SIZES,
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/slurm/uid_1/job_5,"
    "task_memcg=/slurm/uid_1/job_5/step_0,task={},pid=4711,uid=1000",
    "oom_reaper: reaped process 4711 ({}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "[   4711]  1000  4711     1000      100    40960        0             0 {}",
    "audit: type=1326 audit(1.1:1): auid=1000 uid=1000 gid=1000 ses=1 pid=4711 comm=\"{}\" exe=\"/usr/bin/x\" sig=31",
    "process 4711 ({}) no longer affine to cpu3",
    "program {} is using a deprecated SCSI ioctl, please convert it to SG_IO",
    "warning: `{}' uses wireless extensions which will stop working for Wi-Fi 7 hardware; use nl80211",
    "futex_wake_op: {} tries to shift op by -1; fix this program",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm {}: reading directory lblock 0",
    "EXT4-fs warning (device sda1): ext4_dx_find_entry:1: inode #2: lblock 0: comm {}: error -5 reading directory",
    "XFS (nvme0n1): {} should use fallocate; XFS_IOC_ALLOCSP ioctl unsupported",
    "XFS: {}(4711) possible memory allocation deadlock size 65552 in kmem_realloc (mode:0x2400240)",
    "BTRFS info (device sda): device stats zeroed by {} (4711)",
    "BTRFS: device fsid 1b7f2b6c devid 1 transid 8 /dev/sda (8:0) scanned by {} (4711)",
    "nvme nvme0: {}: nsid (1) in cmd does not match nsid (2) of namespace",
    "mlx5_core 0000:5e:00.0: {}: Unexpected write to kernel-exclusive config offset 4",
    "nvidia 0000:05:00.0: {}: Unexpected write to kernel-exclusive config offset 4",
    "efa 0000:00:1d.0: {}: Unexpected write to kernel-exclusive config offset 4",
    "amdgpu 0000:05:00.0: {}: fail, attempted private mapping",
    "amdgpu 0000:05:00.0: amdgpu: Send SIGBUS to process {}(pasid:32771)",
    "amdgpu 0000:05:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32773, for process {} "
    "pid 4711 thread {} pid 4711)",
    "NVRM: Xid (PCI:0000:05:00): 31, pid=4711, name={}, Ch 00000008, intr 00000000. MMU Fault",
    "NVRM: Xid (PCI:0000:05:00): 149, pid=4711, name={}, NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6 0x0)",
    "NVRM: Xid (PCI:0000:05:00): 154, pid=4711, name={}, GPU recovery action changed from 0x2 (Node Reboot Required) "
    "to 0x0 (None)",
)  # fmt: skip
"""Further on."""

STRANGE = (
    "{}: something that no kernel of today says on the device at 0x1234",
    "{} did something that no kernel of today tells of",
    "{}:4711 mapped something",
    "({}) something",
    "{}",
)
"""What a kernel of tomorrow may say."""


def task_shown(name: str) -> str:
    """A line of sched_show_task() before 5.11: the name fills 15 columns."""
    return f"{name:15.15} D    0  4711   4710 0x00000080"
