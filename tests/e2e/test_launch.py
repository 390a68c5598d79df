"""A job counts from its allocation: its node dies in the Prolog, or the Prolog, a TaskProlog or another plugin fails
there before its script began."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import Story

ARMED = """mv {dir}/armed {dir}/taken 2>/dev/null && echo $SLURMD_NODENAME >{dir}/bad
[ "$SLURMD_NODENAME" != "$(cat {dir}/bad 2>/dev/null)" ]
"""
"""While it is armed, the node of the next job is bad from then on."""
PROLOG = f"[ -e {{dir}}/slow ] && sleep 8\n{ARMED}"
PLUGIN = """
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
SPANK_PLUGIN(broken, 1)
static int fails(spank_t spank, const char *hook, char **av)
{
    const char *node = getenv("SLURMD_NODENAME");
    char told[64] = "", line[256];

    if (spank_context() != S_CTX_REMOTE || strcmp(hook, av[0]))
        return 0;
    if (!node && !spank_getenv(spank, "SLURM_NODELIST", told, sizeof(told)))
        node = told;
    snprintf(line, sizeof(line), "SLURMD_NODENAME=%s %s", node ? node : "unknown", av[1]);
    return system(line) ? -1 : 0;
}
int slurm_spank_init(spank_t s, int ac, char **av) { return fails(s, "init", av); }
int slurm_spank_user_init(spank_t s, int ac, char **av) { return fails(s, "user_init", av); }
int slurm_spank_task_init_privileged(spank_t s, int ac, char **av) { return fails(s, "task_init_privileged", av); }
"""


@pytest.fixture
def prolog(story: Story) -> Iterator[Story]:
    """Slurm runs a Prolog: slow while `slow` is there, and failing on the node that `bad` names."""
    script = story.script("prolog.sh", PROLOG.format(dir=story.dir))
    with changed_conf(story.bed, lambda conf: f"{conf}\nProlog={script}\nPrologFlags=Alloc\n"):
        yield story


def submit(story: Story, *options: str) -> int:
    return story.submit(story.script("sleeps.sh", "sleep 5\n"), "--exclusive", "-N1", *options)


def test_a_node_whose_prolog_fails_hurts_one_job_which_goes_on_elsewhere_and_serves_again_when_it_passes(
    prolog: Story,
) -> None:
    (prolog.dir / "armed").touch()
    hurt = submit(prolog, "--auto-resume=1")
    prolog.wait("it runs elsewhere", lambda: prolog.job(hurt).restarts and prolog.job(hurt).state == "RUNNING", 30.0)
    (node,) = prolog.lines("bad")
    assert prolog.job(hurt).fields["NodeList"] != node
    assert f"{node}: Slurm says 'Prolog error'" in prolog.explain(f"{hurt}")
    for job in (submit(prolog), submit(prolog), hurt):
        ended = prolog.wait_end(job, 60.0)
        assert (ended.state, ended.fields["NodeList"] != node) == ("COMPLETED", True)
    assert prolog.job(hurt).restarts == 1
    (prolog.dir / "bad").unlink()
    prolog.bed.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
    prolog.wait("it serves again", lambda: prolog.node_state(node) == "IDLE", 60.0)


def test_a_job_whose_node_dies_in_the_prolog_is_back_within_seconds_and_counted(prolog: Story) -> None:
    (prolog.dir / "slow").touch()
    job = submit(prolog, "--auto-resume=1")
    prolog.wait_state(job, "RUNNING")
    prolog.hurt(FaultKind.KILL_NODE, prolog.job(job).fields["NodeList"])
    prolog.wait("it has nodes again", lambda: prolog.job(job).restarts == 1 and prolog.job(job).state == "RUNNING")
    assert "1 of 5 resumes are used" in prolog.explain(f"{job}")
    assert prolog.wait_end(job, 60.0).state == "COMPLETED"


def goes_on_elsewhere(story: Story, told: str) -> None:
    """Its first node breaks its launch; `told` of that in its explanation."""
    (story.dir / "armed").touch()
    job = submit(story, "--auto-resume=1")
    story.wait("it runs elsewhere", lambda: story.job(job).restarts and story.job(job).state == "RUNNING", 30.0)
    (node,) = story.lines("bad")
    assert f"{node}: {told}" in story.explain(f"{job}")
    ended = story.wait_end(job, 60.0)
    assert (ended.state, ended.restarts, ended.fields["NodeList"] != node) == ("COMPLETED", 1, True)
    (story.dir / "bad").unlink()
    story.wait("its node serves", lambda: story.node_state(node) == "IDLE", 90.0)


def test_a_job_whose_task_prolog_fails_on_one_node_goes_on_elsewhere(story: Story) -> None:
    script = story.script("task_prolog.sh", ARMED.format(dir=story.dir))
    with changed_conf(story.bed, lambda conf: f"{conf}\nTaskProlog={script}\n"):
        goes_on_elsewhere(story, "something failed there before it (its output, a TaskProlog, another plugin)")


@contextmanager
def broken_plugin(story: Story, hook: str, command: str) -> Iterator[None]:
    """A plugin of another author fails in this hook where the command does."""
    source, plugin = story.dir / "broken.c", story.dir / "broken.so"
    source.write_text(PLUGIN)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(plugin), str(source)], check=True)
    conf = story.bed.spec.dir / "etc" / "plugstack.conf"
    before = conf.read_text()
    conf.write_text(f"{before}\nrequired {plugin} {hook} {command}\n")
    try:
        yield
    finally:
        conf.write_text(before)


@pytest.mark.parametrize("hook", ["init", "user_init", "task_init_privileged"])
def test_a_job_goes_on_elsewhere_where_another_plugin_fails_before_its_script(story: Story, hook: str) -> None:
    """Slurm calls a job complete, with 0, whose slurmstepd could not begin."""
    script = story.script("plugin.sh", ARMED.format(dir=story.dir))
    with broken_plugin(story, hook, str(script)):
        goes_on_elsewhere(story, "Slurm says" if hook == "init" else "something failed there before it")


@pytest.mark.parametrize("hook", ["user_init", "task_init_privileged"])
def test_a_job_whose_script_begins_nowhere_is_not_run_for_ever(story: Story, hook: str) -> None:
    """Each run is asked about as what it is, though Slurm tells its number to the script alone."""
    with broken_plugin(story, hook, "false"):
        job = submit(story, "--auto-resume=1")
        story.wait("it is ruled on", lambda: story.job(job).restarts == 1 and "no_evidence" in story.explain(f"{job}"))
        assert story.job(job).restarts == 1
        assert story.get(f"/v1/jobs/{job}/history")[-1]["rule"] == "resume.no_evidence"
