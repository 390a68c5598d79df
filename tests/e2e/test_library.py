"""What the head reads through Slurm's own library, of each Slurm."""

import json
import sys
from typing import Any

from steward_bed.bed import Backend, Bed
from tests.e2e.story import Story

_ASK = """\
import json, subprocess, sys
from steward.adapters.slurm.library import Library

library = Library()
for command in ["true", *sys.argv[1:]]:
    subprocess.run(command, shell=True, check=True, stdout=sys.stderr)
    told, parts = library.node(["n1", "n2"]), library.partitions()
    nodes = told and [line.split("\\t")[0] for line in told.lines]
    print(json.dumps({"nodes": nodes, "parts": parts and list(parts.lines)}))
"""


def asked(bed: Bed, *between: str) -> list[Any]:
    """What a head is told of n1 and n2: at first, and after each of these commands of the shell."""
    python = "/opt/steward/bin/python3" if bed.spec.backend is Backend.DOCKER else sys.executable
    (bed.shared / "ask.py").write_text(_ASK)
    return [json.loads(line) for line in bed.run([python, str(bed.shared / "ask.py"), *between]).text.splitlines()]


def test_single_nodes_and_partitions_are_told_of(story: Story) -> None:
    at_first, later, much_later = asked(story.bed, "sleep 1.5", "sleep 1.5")
    assert at_first == later == much_later
    assert at_first["nodes"] == ["n1", "n2"]

    name = "library"
    try:
        before, made, moved = asked(
            story.bed,
            f"sleep 1.5; scontrol create partition={name} nodes=n1",
            f"sleep 1.5; scontrol update partition={name} nodes=n2",
        )
    finally:
        story.bed.run(["scontrol", "delete", f"partition={name}"], check=False)
    assert before["nodes"] == made["nodes"] == moved["nodes"] == ["n1", "n2"]
    assert len({str(each["parts"]) for each in (before, made, moved)}) == 3
