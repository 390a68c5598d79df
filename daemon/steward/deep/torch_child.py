"""`python -m steward.deep.torch_child`: measures by PyTorch, an object a line on stdout. Started by `workers.py`.

gpu SECONDS                                       arithmetic, memory and transfers of every GPU
allreduce BACKEND RANK PORT ADDRESS SECONDS       an all_reduce of two ranks over gloo or nccl
"""

import json
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

_SIZE = 8192
_CHUNK = 1 << 28
_MEMORY_SHARE = 0.6
_PATTERNS = (0, -1, 0x55555555, -0x55555556)
_MESSAGE = {"gloo": 4 << 20, "nccl": 64 << 20}
"""The size of a message, in elements of four bytes, by backend."""
_MEET_S = 20.0


def main(words: list[str]) -> int:
    match words:
        case ["gpu", seconds]:
            _gpus(float(seconds))
        case ["allreduce", backend, rank, port, address, seconds]:
            _allreduce(backend, int(rank), f"tcp://{address}:{port}", float(seconds))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def _print(**what: object) -> None:
    print(json.dumps(what), flush=True)


def _gpus(seconds: float) -> None:
    if not torch.cuda.is_available():
        _print(error="PyTorch sees no GPU: is it built for this driver?")
        return
    count = torch.cuda.device_count()
    for gpu in range(count):
        share = seconds / count
        _gemm(gpu, share * 0.4)
        _memory(gpu, share * 0.4)
        _copies(gpu, share * 0.1)


def _gemm(gpu: int, seconds: float) -> None:
    """Measure matrix products; a GPU that computes two results for the same product is broken."""
    torch.manual_seed(1)
    one = torch.randn(_SIZE, _SIZE, device=f"cuda:{gpu}", dtype=torch.bfloat16)
    expected, rounds, wrong, spent = one @ one, 0, 0, 0.0
    until = time.monotonic() + seconds
    while time.monotonic() < until or rounds == 0:
        torch.cuda.synchronize(gpu)
        began = time.perf_counter()
        for _ in range(10):
            found = one @ one
        torch.cuda.synchronize(gpu)
        spent += time.perf_counter() - began
        wrong += not torch.equal(found, expected)
        rounds += 10
    speed = rounds * 2 * _SIZE**3 / spent / 1e12
    _print(
        check="gpu.gemm",
        gpu=gpu,
        value=speed,
        unit="TFLOP/s",
        wrong=wrong,
        text="the same product gave different results",
    )


def _memory(gpu: int, seconds: float) -> None:
    free, _ = torch.cuda.mem_get_info(gpu)
    size = int(free * _MEMORY_SHARE) // _CHUNK
    chunks = [torch.empty(_CHUNK // 4, dtype=torch.int32, device=f"cuda:{gpu}") for _ in range(size)]
    until, wrong, moved, began = time.monotonic() + seconds, 0, 0, time.perf_counter()
    for turn in range(1 << 20):
        pattern = _PATTERNS[turn % len(_PATTERNS)]
        for chunk in chunks:
            chunk.fill_(pattern)
        wrong += sum(bool((chunk != pattern).any().item()) for chunk in chunks)
        moved += 2 * size * _CHUNK
        if time.monotonic() >= until:
            break
    speed = moved / (time.perf_counter() - began) / 1e9
    text = f"{wrong} pieces of memory did not keep what was written"
    _print(check="gpu.memory", gpu=gpu, value=speed, unit="GB/s", wrong=wrong, text=text)


def _copies(gpu: int, seconds: float) -> None:
    here = torch.empty(_CHUNK, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(_CHUNK, dtype=torch.uint8, device=f"cuda:{gpu}")
    for check, target, source in (("gpu.h2d", there, here), ("gpu.d2h", here, there)):
        target.copy_(source)
        torch.cuda.synchronize(gpu)
        until, rounds, began = time.monotonic() + seconds / 2, 0, time.perf_counter()
        while time.monotonic() < until or rounds == 0:
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(gpu)
            rounds += 1
        value = rounds * _CHUNK / (time.perf_counter() - began) / 1e9
        _print(check=check, gpu=gpu, value=value, unit="GB/s", wrong=0)


def _allreduce(backend: str, rank: int, where: str, seconds: float) -> None:
    dist.init_process_group(
        backend, init_method=where, rank=rank, world_size=2, timeout=timedelta(seconds=seconds + _MEET_S)
    )
    device = "cuda:0" if backend == "nccl" else "cpu"
    data = torch.ones(_MESSAGE[backend], dtype=torch.float32, device=device)
    more = torch.ones(1, device=device)
    dist.all_reduce(data)
    rounds, wrong, spent = 0, 0, 0.0
    until = time.monotonic() + seconds
    while more.item() > 0:
        data.fill_(rank + 1.0)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(data)
        wrong += not bool((data == 3.0).all().item())
        spent += time.perf_counter() - began
        rounds += 1
        more.fill_(float(rank == 0 and time.monotonic() < until))
        dist.all_reduce(more)  # rank 0's clock ends both ranks in the same round
    dist.destroy_process_group()
    value = rounds * data.numel() * 4 / spent / 1e9
    _print(value=value, unit="GB/s", wrong=wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
