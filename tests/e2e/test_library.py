"""What the head reads through Slurm's own library, of each Slurm."""

import json
import sys
from typing import Any

from steward_bed.bed import Backend, Bed
from tests.e2e.story import Story

_ASK_JOBS = """\
import json, sys, time
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.library import Library
from steward.adapters.slurm.records import job_of
from steward.model.fit import Question

library, fits, number = Library(), FitAsker(), int(sys.argv[1])

def told(answer):
    return {job.id: [job.state.value, job.name, job.user_id, sorted(job.nodes)] for job in map(job_of, answer.lines)}

def is_told_that_nothing_changed():  # not in the second of a change
    time.sleep(0.5)
    return library.jobs(library.jobs().stamp).lines is None

everything, alone, missing = library.jobs(), library.job([number]), library.job([4_000_000_000])
print(json.dumps({
    "all": told(everything), "alone": told(alone), "missing": told(missing),
    "is_same": any(is_told_that_nothing_changed() for _ in range(20)),
    "fits": [fits.ask(Question(job=number, without=frozenset(without))).state.value for without in ((), sys.argv[2:])],
    "problem": library.problem(),
}))
"""
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
    return lines_of(bed, _ASK, *between)


def lines_of(bed: Bed, program: str, *words: str) -> list[Any]:
    """What a program of the head's Python prints."""
    python = "/opt/steward/bin/python3" if bed.spec.backend is Backend.DOCKER else sys.executable
    (bed.shared / "ask.py").write_text(program)
    return [json.loads(line) for line in bed.run([python, str(bed.shared / "ask.py"), *words]).text.splitlines()]


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


def test_all_jobs_and_single_ones_are_told_of_and_whether_one_fits(story: Story) -> None:
    running = story.submit(story.script("long.sh", "sleep 60\n"), "-N1", "-J", "long", "-w", "n1")
    story.wait_state(running, "RUNNING")
    held = story.submit(story.script("held.sh", "sleep 1\n"), "-N1", "-J", "held", "--hold")
    nodes = [node["name"] for node in story.get("/v1/nodes")]

    (of_running,) = lines_of(story.bed, _ASK_JOBS, str(running), *nodes)
    (of_held,) = lines_of(story.bed, _ASK_JOBS, str(held), *nodes)

    for found, job in ((of_running, str(running)), (of_held, str(held))):
        assert found["problem"] == ""
        assert found["alone"] == {job: found["all"][job]}
        assert (found["missing"], found["is_same"]) == ({}, True)
    assert of_held["all"][str(running)][:2] == ["RUNNING", "long"]
    assert of_held["all"][str(running)][3] == ["n1"]
    assert of_held["alone"][str(held)][:2] == ["PENDING", "held"]
    assert of_held["fits"] == ["now", "never"]
