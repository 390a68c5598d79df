"""What Slurm itself does to a job: its time limit, a job that goes before it; and jobs that the site opts in."""

import re
from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story

SLURM = """PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=low Nodes=ALL PriorityTier=0 PreemptMode=CANCEL
PartitionName=back Nodes=ALL PriorityTier=0 PreemptMode=REQUEUE
"""
RESUME = {
    "preempted": True,
    "checkpoint_signal": "USR1",
    "checkpoint_before_s": 30,
    "default": [{"partition": "low", "mode": "any:1,age=0"}],
}
LIMIT_S = 60.0
SEEN_S = 4
"""A run of less may be over before the head has looked."""
LATE_S = 40.0
"""Slurm looks at time limits every 30 s."""


@pytest.fixture(scope="module")
def site_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Nodes n1..n3; jobs in `low` are cancelled when others want their nodes, and resumed without asking for it; those
    in `back` are put back by Slurm itself."""
    yield from brought_up(request, nodes=3, steward=True, slurm_conf=SLURM, settings={"resume": RESUME})


@pytest.fixture
def site(site_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(site_bed, request) as place:
        yield Story(site_bed, place)


@pytest.fixture(scope="module", autouse=True)
def limited(site_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A job on n1 that wants to go on after its minute; it runs while the other tests do."""
    with own_place(site_bed, request) as place:
        site = Story(site_bed, place)
        begin_limited(site)
        yield site


def begin_limited(site: Story) -> None:
    script = site.script(
        "limited.sh",
        f"""told={site.dir}/limited-$SLURM_JOB_ID
echo "run ${{SLURM_RESTART_COUNT:-0}}" >>$told
trap 'echo saved $EPOCHREALTIME >>$told' USR1
[ "${{SLURM_RESTART_COUNT:-0}}" = 0 ] || exit 0
while :; do sleep 0.5; done
""",
    )
    job = site.submit(script, "--auto-resume=1,timeout=1", "-N1", "-wn1", "--exclusive", "-t1")
    site.wait_state(job, "RUNNING")


def wait_rules(site: Story, job: int, *rules: str) -> None:
    """Why each of its runs was followed by another, or not; empty for one that ended well."""
    told = lambda: [run["rule"] for run in site.get(f"/v1/jobs/{job}/history")] == list(rules)  # noqa: E731
    site.wait(f"the ledger has {rules}", told)


def test_a_job_that_said_nothing_is_resumed_where_its_partition_is_and_one_that_said_no_is_not(site: Story) -> None:
    fails = site.script("fails.sh", f"echo $SLURM_JOB_ID >>{site.dir}/fails\nexit 4\n")
    silent = site.submit(fails, "-plow", "-N1", "-wn2")
    refuses = site.submit(fails, "-plow", "-N1", "-wn3", "--auto-resume=0")
    assert site.wait_end(refuses).exit_code == "4:0"
    site.wait("the other has had its resume", lambda: len(site.lines("fails")) == 3)
    assert site.wait_end(silent).exit_code == "4:0"
    assert sorted(site.lines("fails")) == sorted([f"{silent}", f"{silent}", f"{refuses}"])
    wait_rules(site, silent, "resume.any", "resume.any_used")


def test_a_job_that_had_to_make_room_comes_back_when_there_is_room(site: Story) -> None:
    on = ["-N2", "-wn[2,3]", "--exclusive"]
    script = f'echo "low ${{SLURM_RESTART_COUNT:-0}}" >>{site.dir}/room\nsleep ${{SLURM_RESTART_COUNT:-300}}\n'
    low = site.submit(site.script("low.sh", script), "--auto-resume=1", "-plow", *on)
    site.wait("it runs", lambda: site.lines("room") == ["low 0"])
    site.submit(site.script("first.sh", f"echo first >>{site.dir}/room\nsleep 3\n"), *on)
    site.wait("the other has its nodes", lambda: site.lines("room")[1:] == ["first"], 60.0)
    site.wait_state(low, "COMPLETED", 60.0)
    assert site.lines("room") == ["low 0", "first", "low 1"]
    wait_rules(site, low, "resume.preempted", "")
    assert "to make room" in site.explain(f"{low}")


def test_a_job_that_slurm_put_back_to_make_room_goes_before_nobody_and_runs_when_the_other_is_through(
    site: Story,
) -> None:
    on = ["-N2", "-wn[2,3]", "--exclusive"]
    script = f"""echo "back ${{SLURM_RESTART_COUNT:-0}}" >>{site.dir}/back
[ "${{SLURM_RESTART_COUNT:-0}}" != 0 ] || sleep 300
sleep {SEEN_S}
"""
    low = site.submit(site.script("back.sh", script), "--auto-resume=1", "-pback", *on)
    site.wait("it runs", lambda: site.lines("back") == ["back 0"])
    site.submit(site.script("goes.sh", f"echo goes >>{site.dir}/back\nsleep 5\necho gone >>{site.dir}/back\n"), *on)
    site.wait_state(low, "COMPLETED", 60.0)
    assert site.lines("back") == ["back 0", "goes", "gone", "back 1"]
    told = {e["kind"]: e["text"] for e in site.events("job.") if e["job"] == low}
    assert told.keys() - {"job.ended"} == {"job.opted_in", "job.requeued", "job.resumed"}, told


def test_a_job_whose_node_dies_while_it_makes_room_comes_back_once(site: Story) -> None:
    on = ["-N1", "-wn3", "--exclusive"]
    script = f"""echo "back ${{SLURM_RESTART_COUNT:-0}}" >>{site.dir}/back
[ "${{SLURM_RESTART_COUNT:-0}}" != 0 ] || sleep 300
sleep {SEEN_S}
"""
    low = site.submit(site.script("back.sh", script), "--auto-resume=1", "-pback", *on)
    site.wait("it runs", lambda: site.lines("back") == ["back 0"])
    first = site.submit(site.script("goes.sh", f"echo goes >>{site.dir}/back\nsleep 5\n"), *on)
    hurt_at = site.hurt(FaultKind.KILL_NODE, "n3")
    site.wait_state(low, "COMPLETED", 120.0)
    assert site.wait_end(first, 60.0).state == "COMPLETED"
    assert site.lines("back").count("back 1") == 1
    assert site.job(low).restarts == len(site.lines("back")) - 2
    site.wait_case("n3", "closed", 60.0, since=hurt_at)
    assert "2 of 5 resumes" not in site.explain(f"{low}")


def test_a_job_that_asked_for_it_may_save_before_its_time_limit_and_goes_on_after_it(
    limited: Story, site: Story
) -> None:
    """A second time with a job of its own. With `site`, which is of the same cluster, a failure shows the logs. One
    signal is asked for, which Slurm may deliver twice."""
    if not limited.jobs:
        begin_limited(limited)
    job = limited.jobs.pop()
    limited.wait_state(job, "COMPLETED", LIMIT_S + LATE_S)
    first, *saved, last = limited.lines(f"limited-{job}")
    assert (first, {line.split()[0] for line in saved}, last) == ("run 0", {"saved"}, "run 1")
    asked = re.findall(rf"REQUEST_KILL_JOB JobId={job} ", limited.bed.logs()["slurmctld"].read_text())
    assert len(asked) == 1, saved
    wait_rules(limited, job, "resume.timeout", "")
    assert "goes on after its time limit" in limited.explain(f"{job}")
