"""A star of TCP connections between the ranks of one step, enough for data-parallel training.

Rank 0 adds the others' arrays in rank order, so that the same inputs give the same bits on every run.
"""

import os
import socket
import time
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_PATIENCE_S = 60.0


class Star:
    """The connections of one rank: to all others at rank 0, to rank 0 elsewhere."""

    def __init__(self, rank: int, peers: list[socket.socket]) -> None:
        self.rank = rank
        self._peers = peers

    @classmethod
    def join(cls, *, rank: int, size: int, meeting: Path) -> Self:
        """Meet through the file `meeting`, which rank 0 writes. Raises OSError when a rank does not come."""
        return cls(rank, _welcome(size, meeting) if rank == 0 else [_call(rank, meeting)])

    def broadcast(self, array: Array) -> Array:
        """Rank 0's array at every rank."""
        if self.rank == 0:
            for peer in self._peers:
                peer.sendall(array.tobytes())
            return array
        return _receive(self._peers[0], array)

    def sum(self, array: Array) -> Array:
        """The sum over all ranks, the same bits at each. Raises OSError when a rank is gone."""
        if self.rank != 0:
            self._peers[0].sendall(array.tobytes())
            return _receive(self._peers[0], array)
        total = array.copy()
        for peer in self._peers:
            total += _receive(peer, array)
        return self.broadcast(total)


def _welcome(size: int, meeting: Path) -> list[socket.socket]:
    """Connections from ranks 1, 2, ... in this order."""
    with socket.create_server(("", 0)) as server:
        server.settimeout(_PATIENCE_S)
        address = f"{socket.gethostbyname(socket.gethostname())} {server.getsockname()[1]}"
        draft = meeting.with_suffix(".tmp")
        draft.write_text(address)
        draft.replace(meeting)
        peers: dict[int, socket.socket] = {}
        while len(peers) < size - 1:
            peer = _tuned(server.accept()[0])
            peers[int.from_bytes(_receive_bytes(peer, 4), "big")] = peer
    return [peers[rank] for rank in sorted(peers)]


def _call(rank: int, meeting: Path) -> socket.socket:
    until = time.monotonic() + _PATIENCE_S
    while not meeting.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"rank 0 has not written {meeting} in {_PATIENCE_S:g} s")
        time.sleep(0.01)
    host, port = meeting.read_text().split()
    peer = _tuned(socket.create_connection((host, int(port)), timeout=_PATIENCE_S))
    peer.sendall(rank.to_bytes(4, "big"))
    return peer


def _tuned(peer: socket.socket) -> socket.socket:
    peer.settimeout(_PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def _receive(peer: socket.socket, like: Array) -> Array:
    return np.frombuffer(_receive_bytes(peer, like.nbytes), dtype=like.dtype).reshape(like.shape).copy()


def _receive_bytes(peer: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = peer.recv(count - len(parts))
        if not part:
            raise ConnectionError("a rank has gone")
        parts += part
    return bytes(parts)


def meeting_file(folder: Path) -> Path:
    """A file that no other attempt of this or another job uses."""
    word = os.environ.get
    names = (word("SLURM_JOB_ID", "0"), word("SLURM_RESTART_COUNT", "0"), word("SLURM_STEP_ID", "0"))
    return folder / f"meeting-{'-'.join(names)}"
