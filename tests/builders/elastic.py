"""Frames about elastic runs."""

from typing import Any

ELASTIC_FRAMES: dict[str, Any] = {
    "elastic_order": {
        "t": "elastic",
        "run": 7,
        "order": "submit",
        "token": "r1",
        "nodes": 2,
        "grace_s": 30,
        "minutes": 0,
        "qos": "",
        "exclude": ["n2"],
        "why": "two nodes are idle",
    },
    "elastic_word": {
        "t": "elastic",
        "run": 7,
        "restart": 0,
        "uid": 1000,
        "spec": "8,grace=30",
        "state": "running",
        "generation": 2,
        "members": ["n1", "n2"],
        "joined": ["n1", "n2", "n3"],
        "leaving": ["n2"],
        "step": 12,
        "saved_step": 10,
        "consumed": 384,
        "failed": [{"token": "r1", "why": "sbatch: no"}],
        "timings": {"saved_s": 0.4, "up_s": None},
    },
}
