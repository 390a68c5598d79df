"""Training whose number of nodes may change at any step, with Python's standard library alone: what a framework does
for you, so that the parts can be seen. The same bits come out at any sequence of sizes.

A linear model learns made-up data. Each rank computes the gradients of its samples; rank 0 sums them exactly.
"""

import argparse
import hashlib
import json
import math
import os
import random
import socket
import struct
import sys
import time
from pathlib import Path

from steward import job
from steward.job import elastic

LENGTH, WIDTH, BATCH, RATE = 4096, 8, 48, 0.05
PATIENCE_S = 60.0
SLURMS = {
    "RANK": os.environ.get("SLURM_PROCID", "0"),
    "WORLD_SIZE": os.environ.get("SLURM_NTASKS", "1"),
    "MASTER_ADDR": os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"),
    "MASTER_PORT": str(20_000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 10_000),
}
"""Where `srun` alone starts it: a job of a fixed size, its script on the first node."""

Rows = list[list[float]]


class Ranks:
    """A star of TCP connections: to all others at rank 0, to rank 0 elsewhere."""

    def __init__(self) -> None:
        env = {**SLURMS, **os.environ}
        self.rank, self.size = int(env["RANK"]), int(env["WORLD_SIZE"])
        place = env["MASTER_ADDR"], int(env["MASTER_PORT"])
        self.peers = self.welcome(place[1]) if self.rank == 0 else [self.call(place)]

    def welcome(self, port: int) -> list[socket.socket]:
        """Connections of ranks 1, 2, ... in this order. A rank that is alone listens nowhere."""
        if self.size == 1:
            return []
        came: dict[int, socket.socket] = {}
        with socket.create_server(("", port)) as server:
            server.settimeout(PATIENCE_S)
            while len(came) < self.size - 1:
                peer = tuned(server.accept()[0])
                came[json.loads(receive(peer))] = peer
        return [came[rank] for rank in sorted(came)]

    def call(self, place: tuple[str, int]) -> socket.socket:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                peer = tuned(socket.create_connection(place, timeout=PATIENCE_S))
                break
            except ConnectionRefusedError:  # rank 0 does not listen yet
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        send(peer, json.dumps(self.rank).encode())
        return peer

    def gather(self, mine: bytes) -> list[bytes]:
        """What every rank gave, by rank, on rank 0; nothing elsewhere."""
        if self.rank:
            send(self.peers[0], mine)
            return []
        return [mine, *(receive(peer) for peer in self.peers)]

    def broadcast(self, data: bytes) -> bytes:
        if self.rank:
            return receive(self.peers[0])
        for peer in self.peers:
            send(peer, data)
        return data

    def any(self, word: bool) -> bool:
        """True on all ranks when it is true on one."""
        words = self.gather(b"1" if word else b"0")
        return self.broadcast(b"1" if b"1" in words else b"0") == b"1"

    def sum(self, rows: Rows) -> list[float]:
        """The sum of all ranks' rows. It is exact: the same bits however the rows are cut over the ranks."""
        flat = [value for row in rows for value in row]
        parts = self.gather(struct.pack(f"{len(flat)}d", *flat))
        if self.rank == 0:
            values = [value for part in parts for value in struct.unpack(f"{len(part) // 8}d", part)]
            width = len(rows[0])
            summed = [math.fsum(values[place::width]) for place in range(width)]
        packed = self.broadcast(struct.pack(f"{len(summed)}d", *summed) if self.rank == 0 else b"")
        return list(struct.unpack(f"{len(packed) // 8}d", packed))


def tuned(peer: socket.socket) -> socket.socket:
    peer.settimeout(PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def send(peer: socket.socket, data: bytes) -> None:
    peer.sendall(len(data).to_bytes(4, "big") + data)


def receive(peer: socket.socket) -> bytes:
    return exactly(peer, int.from_bytes(exactly(peer, 4), "big"))


def exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        if not (part := peer.recv(count - len(data))):
            raise ConnectionError("a rank has gone")
        data += part
    return bytes(data)


def sample(index: int) -> tuple[list[float], float]:
    """Made-up data, the same for the same index."""
    dice = random.Random(index)
    row = [dice.uniform(-1, 1) for _ in range(WIDTH)]
    return row, sum((place + 1) * value for place, value in enumerate(row)) + dice.gauss(0, 0.1)


def gradient(weights: list[float], index: int) -> list[float]:
    """Of one sample's squared error, and the error itself behind it."""
    row, wanted = sample(index)
    wrong = sum(weight * value for weight, value in zip(weights, row, strict=True)) - wanted
    return [*(wrong * value for value in row), wrong * wrong]


class Training:
    """Weights and how far it is: what a checkpoint holds."""

    def __init__(self, asked: argparse.Namespace, ranks: Ranks) -> None:
        self.asked, self.ranks, self.step, self.weights = asked, ranks, 0, [0.0] * WIDTH
        kept = asked.folder / "checkpoint.json"
        found = ranks.broadcast(kept.read_bytes() if ranks.rank == 0 and kept.exists() else b"")
        if found:
            self.step, self.weights = json.loads(found)
        plan = elastic.batch_plan(BATCH, world=ranks.size, rank=ranks.rank)
        self.sampler = elastic.ElasticSampler(LENGTH, plan, seed=7, consumed_samples=self.step * BATCH)

    def tell(self, what: str, **facts: object) -> None:
        """One JSON line in `progress.jsonl`."""
        line = {"at": time.time(), "what": what, "step": self.step, "generation": elastic.generation(), **facts}
        with (self.asked.folder / "progress.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")

    def advance(self) -> None:
        """One step. A rank with fewer samples is done with its part sooner, as with a big model."""
        until, taken = time.monotonic(), self.sampler.indexes()
        until += self.asked.sample_s * len(taken)
        rows = [gradient(self.weights, index) for index in taken]
        time.sleep(max(0.0, until - time.monotonic()))
        *slope, loss = self.ranks.sum(rows)
        self.weights = [weight - RATE * part / BATCH for weight, part in zip(self.weights, slope, strict=True)]
        self.step += 1
        self.sampler.consumed_samples += BATCH
        self.tell("step", rank=self.ranks.rank, loss=loss / BATCH, samples=taken)

    def save(self) -> None:
        """Whole or not there: written beside, synced, renamed."""
        if self.ranks.rank == 0:
            kept = self.asked.folder / "checkpoint.json"
            draft = kept.with_suffix(f".{os.getpid()}")
            with draft.open("w") as out:
                json.dump([self.step, self.weights], out)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(kept)
            job.checkpoint_saved(kept, self.step)
        self.ranks.any(False)  # no rank goes on before it is there

    def run(self) -> None:
        is_first = self.ranks.rank == 0
        if is_first:
            self.tell("begun", world=self.ranks.size, born=born())
        while self.step < self.asked.steps:
            self.advance()
            if is_first:
                job.progress(self.step)
            if elastic.resize_wanted(self.step, self.sampler.consumed_samples, agree=self.ranks.any):
                elastic.save_and_wait(self.save, self.step, self.sampler.consumed_samples)
            if self.step % self.asked.keep_every == 0:
                self.save()
        self.save()
        if is_first:
            digest = hashlib.sha256(struct.pack(f"{WIDTH}d", *self.weights)).hexdigest()
            self.tell("done", world=self.ranks.size, weights=digest)


def born() -> float:
    """When the kernel started this process (Unix s)."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for checkpoint and progress, on a shared file system")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--keep-every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--sample-s", type=float, default=0.0, help="shortest time of a sample on a rank, seconds")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    try:
        Training(asked, Ranks()).run()
    except ConnectionError as error:  # its node died, or the job is cancelled
        sys.exit(f"rank {os.environ.get('RANK', '0')} ends: {error}")


if __name__ == "__main__":
    main()
