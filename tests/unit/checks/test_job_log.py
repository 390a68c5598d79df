"""Each signature of a job's log on a line that it knows, and on one that only looks like it."""

import time

import pytest

from steward.checks.job_log import MAX_LINES, SIGNATURES, signs_in
from steward.model.job_report import Lean

KNOWN = [
    ("slurm.time_limit", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T20:00:00 DUE TO TIME LIMIT ***"),
    ("slurm.preempted", "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T20:00:00 DUE TO PREEMPTION ***"),
    (
        "slurm.node_failure",
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T2 DUE TO NODE FAILURE ***",
    ),
    ("slurm.oom", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM"),
    ("slurm.oom", "slurmstepd: error: Detected 3 oom-kill event(s) in step 7.batch cgroup."),
    ("slurm.cancelled", "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T20:00:00 ***"),
    ("slurm.gres", "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification"),
    ("gpu.ecc", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("gpu.lost", "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system"),
    ("gpu.lost", "NVRM: GPU 0000:3B:00.0: GPU has fallen off the bus."),
    ("gpu.gone", "RuntimeError: CUDA error: no CUDA-capable device is detected"),
    ("gpu.gone", "CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
    ("gpu.xid", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has been lost"),
    ("fabric.flushed", "n1:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1 with status=5 opcode=0"),
    ("fabric.completion", "n1:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB: Got completion with error 12, opcode 0"),
    ("fabric.verbs", "ibv_modify_qp for QP 12 failed with error Connection timed out"),
    ("fabric.verbs", "mlx5: transport retry counter exceeded"),
    ("fabric.efa", "NET/OFI fi_cq_readerr failed with prov_errno 15"),
    ("fabric.efa", "EFA device rdmap0 peer is unresponsive"),
    ("user.assert", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("user.assert", "../aten/src/Indexing.cu:1: Assertion failed: device-side assert triggered"),
    ("user.gpu_memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"),
    ("storage", "OSError: [Errno 28] No space left on device: '/scratch/x'"),
    ("storage", "OSError: [Errno 116] Stale file handle"),
    ("storage", "cp: error reading '/data/x': Input/output error"),
    ("storage", "ls: cannot access '/mnt': Transport endpoint is not connected"),
    ("user.python", "ModuleNotFoundError: No module named 'flash_attn'"),
    ("user.python", "[rank3]: KeyError: 'lr'"),
    ("user.python", "12: FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'"),
    ("user.python", "train.py: error: unrecognized arguments: --lrr"),
    ("user.python", "        size mismatch for lm_head.weight: copying a param with shape torch.Size([2])"),
    ("user.shell", "/var/spool/slurmd/job00007/slurm_script: line 3: pyhton: command not found"),
    ("user.nan", "step 1200 | loss: nan | lr 1e-4"),
    ("user.nan", "grad_norm is inf, skipping"),
    ("crash.library", "python[4242]: segfault at 0 ip 00007f error 4 in libnccl.so.2"),
    ("crash.library", "/slurm_script: line 9: 12345 Segmentation fault      (core dumped) python train.py"),
    ("crash.bus", "DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that shm is full"),
    ("nccl.watchdog", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE"),
    ("nccl.peer", "NCCL WARN Call to connect returned: unhandled system error"),
    ("nccl.peer", "NCCL ERROR remote process exited or there was a network error"),
    ("peer.gone", "ConnectionResetError: [Errno 104] Connection reset by peer"),
    ("peer.gone", "BrokenPipeError: [Errno 32] Broken pipe"),
]

UNKNOWN = [
    "*** JOB 7 CANCELLED AT the request of its author DUE TO TIME LIMIT ***",
    "print('slurm says DUE TO PREEMPTION sometimes')",
    "see the FAQ for jobs that end DUE TO NODE FAILURE",
    "the oom_kill event is counted by the cgroup",
    "epoch 3 CANCELLED AT 12",
    "job 7: Invalid generic resource (gres) specification",
    "correctable ECC error count: 3",
    "GPU 0 is lost in thought",
    "Found 8 CUDA-capable devices",
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, MMU Fault",
    "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB",
    "ibv_get_device_list found 8 devices",
    "fi_getinfo selected provider efa",
    "EFA enabled",
    "checking for illegal access to memory",
    "device side asserts are off",
    "out of memory budget for this epoch: no",
    "space left on device: 12 GB",
    "caught ValueError: trying again",
    "raise KeyError('lr')",
    "no size mismatch",
    "hint: line 3: nothing",
    "loss: 0.123 (banana)",
    "info: losses informed",
    "libnccl.so.2 was found",
    "The bus errors out at nine",
    "watchdog started with timeout 600000 ms",
    "NCCL INFO connection established",
    "connection reset counter: 0",
    "pipe broken into stages",
]


@pytest.mark.parametrize(("sign", "line"), KNOWN)
def test_a_known_line_is_named(sign: str, line: str) -> None:
    (found,) = signs_in(f"step 1\n{line}\n")
    assert (found.sign, found.order) == (sign, 1)


@pytest.mark.parametrize("line", UNKNOWN)
def test_a_line_that_only_looks_like_one_is_not(line: str) -> None:
    assert signs_in(line) == ()


def test_every_signature_has_its_sample() -> None:
    assert {one.sign for one in SIGNATURES} == {sign for sign, _ in KNOWN}


def test_what_began_it_comes_first_and_what_followed_is_left_out() -> None:
    text = """step 9
NCCL WARN unhandled system error
[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered
ConnectionResetError: [Errno 104] Connection reset by peer
Watchdog caught collective operation timeout: WorkNCCL(
"""
    assert [sign.sign for sign in signs_in(text)] == ["gpu.ecc", "nccl.watchdog"]


def test_where_there_is_nothing_else_a_cascade_is_told() -> None:
    (sign,) = signs_in("Connection reset by peer\n")
    assert (sign.sign, sign.lean, sign.strong) == ("peer.gone", Lean.CASCADE, False)


def test_what_comes_after_slurms_word_is_tidying_up() -> None:
    text = """slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T20:00:00 DUE TO TIME LIMIT ***
KeyError: 'x'
CUDA error: uncorrectable ECC error encountered
"""
    assert [sign.sign for sign in signs_in(text)] == ["slurm.time_limit"]


def test_what_came_before_slurms_word_is_told_after_it() -> None:
    text = "KeyError: 'x'\nslurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T20:00:00 ***\n"
    assert [sign.sign for sign in signs_in(text)] == ["slurm.cancelled", "user.python"]


def test_each_sign_is_told_once_with_its_first_line() -> None:
    (sign,) = signs_in("KeyError: 'first'\nTypeError: 'second'\n")
    assert sign.line == "KeyError: 'first'"


def test_only_the_end_is_looked_at() -> None:
    assert signs_in("KeyError: 'x'\n" + "step\n" * MAX_LINES) == ()


def test_what_is_shown_is_one_bounded_printable_line() -> None:
    (sign,) = signs_in("KeyError: \x1b[31m" + "é" * 5000)
    assert len(sign.line) <= 200
    assert sign.line.isascii()
    assert sign.line.isprintable()


@pytest.mark.parametrize(
    "line", ["a" * 100_000, "NET/IB : Got completion " * 400, "CUDA " * 20_000, "\0" * 5000, "[[[" * 900]
)
def test_a_text_that_is_made_to_be_slow_is_read_quickly(line: str) -> None:
    began = time.thread_time()
    signs_in("\n".join([line] * MAX_LINES))
    assert time.thread_time() - began < 60.0
