"""In a user's own elastic job: take the coordinator's place, and say to the node's agent what cannot be passed on.

    hostile_relay.py FOLDER

It runs until the file `over` is in FOLDER. Each connection of the agent is a line of FOLDER/said: what it was told.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path

HERE = {"state": "running", "generation": 1, "members": ["n1"], "joined": ["n1"], "leaving": [], "step": 1}
MORE = {"saved_step": 1, "consumed": 1, "why": "", "timings": {"saved_s": 1.0, "up_s": 1.0}}
MANY = [f"n{number:05d}abcdefghijkl" for number in range(1500)]
"""Each list is within its bound; together they are 94 kB, more than a frame holds."""
KINDS = {
    "nan": json.dumps(HERE | MORE | {"timings": {"saved_s": float("nan"), "up_s": float("inf")}}).encode(),
    "many": json.dumps(HERE | MORE | dict.fromkeys(("members", "joined", "leaving"), MANY)).encode(),
    "deep": b"[" * 100_000,
}
HELD_S = 1.0


def end_coordinator(relay: Path) -> None:
    """End the one that listens there, and no other of this user: another test bed may have those."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(relay))
        told = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", told)
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    folder = Path(sys.argv[1])
    relay = Path(os.environ["STEWARD_PROGRESS_FILE"]).parent / "elastic" / "relay.sock"
    relay.parent.mkdir(exist_ok=True)
    kinds = itertools.cycle(sorted(KINDS))
    while not (folder / "over").exists():
        end_coordinator(relay)
        relay.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as place:
            place.bind(str(relay))
            place.listen(8)
            place.settimeout(HELD_S)
            with contextlib.suppress(OSError):
                take_one(place, folder, next(kinds))


def take_one(place: socket.socket, folder: Path, kind: str) -> None:
    agent, _ = place.accept()
    with agent, (folder / "said").open("a") as file:
        agent.settimeout(2 * HELD_S)
        file.write(f"{kind}\n")
        file.flush()
        agent.sendall(KINDS[kind] + b"\n")
        while agent.recv(9999):
            pass


if __name__ == "__main__":
    main()
