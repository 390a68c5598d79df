"""What the head reads through Slurm's own library, of each Slurm."""

import json
import sys
from typing import Any

from steward.testbed.bed import Backend, Bed
from tests.e2e.story import Story

_ASK = """\
import json, subprocess, sys
from steward.adapters.slurm.commands import MAX_BYTES, Commands
from steward.adapters.slurm.single import Single

version = Commands(conf="", timeout_s=10, max_bytes=MAX_BYTES).version()
single = Single()
for command in ["true", *sys.argv[1:]]:
    subprocess.run(command, shell=True, check=True, stdout=sys.stderr)
    told = single.nodes(["n1", "n2"], version)
    print(json.dumps(told and {"nodes": list(told.lines), "parts": told.parts[1]}))
"""


def asked(bed: Bed, *between: str) -> list[Any]:
    """What a head is told of n1 and n2: at first, and after each of these commands of the shell."""
    python = "/opt/steward/bin/python3" if bed.spec.backend is Backend.DOCKER else sys.executable
    (bed.shared / "ask.py").write_text(_ASK)
    return [json.loads(line) for line in bed.run([python, str(bed.shared / "ask.py"), *between]).text.splitlines()]


def test_single_nodes_are_told_of_and_whether_partitions_changed(story: Story) -> None:
    """Slurm tells of a change by the second."""
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
    assert len({each["parts"] for each in (before, made, moved)}) == 3
