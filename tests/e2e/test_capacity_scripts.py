"""Lifecycle scripts run before a node may take work: on new instances and on replaced ones."""

from typing import Any

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.capacity import CLUSTER, GROUP, PARTITION, Capacity, wish
from tests.e2e.story import task_script


def scripted(capacity: Capacity, text: str) -> dict[str, Any]:
    """A source of lifecycle scripts whose on_create.sh is this text; LifeCycleConfig of a group that uses it."""
    source = capacity.dir / "lifecycle"
    source.mkdir(exist_ok=True, mode=0o755)
    mend(capacity, text)
    return {"LifeCycleConfig": {"SourceS3Uri": f"file://{source}", "OnCreate": "on_create.sh"}}


def mend(capacity: Capacity, text: str) -> None:
    path = capacity.dir / "lifecycle" / "on_create.sh"
    path.with_suffix(".new").write_text("#!/bin/bash\nset -eu\n" + text)
    path.with_suffix(".new").chmod(0o755)
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])
def test_a_script_that_fails_is_told_and_tried_again_until_it_is_mended(capacity: Capacity, crash: bool) -> None:
    failing = "echo mounting /fsx\necho 'mount: no such device' >&2\nexit 32\n"
    capacity.create(wish(1, minimum=1, **scripted(capacity, failing)))
    capacity.wait("its failure is told", lambda: capacity.group_events("slot.setup", since=capacity.began)[1:], 60.0)
    if crash:
        capacity.crash_head()
    told = next(text for text in capacity.group_events("slot", since=capacity.began) if "exit status 32" in text)
    assert "OnCreate" in told
    assert "mount: no such device" in told
    events = capacity.aws("list-cluster-events", "--cluster-name", CLUSTER)["Events"]
    assert any("exit status 32" in each["Description"] for each in events)
    found = capacity.group()
    assert (found["Status"], found["CurrentCount"]) == ("Creating", 0)
    assert capacity.partition_state() == "down"
    assert "exit status 32" in capacity.members()[0]["InstanceStatus"]["Message"]
    mend(capacity, "echo all is well\n")
    capacity.wait_group("InService", 1, deadline_s=90.0)
    capacity.wait("the partition is open", lambda: capacity.partition_state() == "up")


def test_a_broken_node_comes_back_through_its_scripts_and_the_job_on_it_goes_on(capacity: Capacity) -> None:
    note = f"echo ran >>{capacity.dir}/ran\n"
    capacity.create(wish(2, **scripted(capacity, note)))
    capacity.wait_group("InService", 2, deadline_s=90.0)
    assert len(capacity.lines("ran")) == 2
    before = capacity.instances()
    task = task_script(capacity)
    job = capacity.submit(
        capacity.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2", "-p", PARTITION
    )
    capacity.wait("two tasks run", lambda: len(capacity.lines("started")) == 2, 40.0)
    victim = capacity.job(job).batch_host
    capacity.hurt(FaultKind.KILL_NODE, victim)
    capacity.wait("the job runs again", lambda: len(capacity.lines("started")) == 4, 90.0)
    capacity.wait_group("InService", 2)
    assert len(capacity.lines("ran")) == 3
    after = capacity.instances()
    assert {node for node in before if before[node] != after[node]} == {victim}
    (capacity.dir / "go").touch()
    assert capacity.wait_end(job).state == "COMPLETED"


def test_scripts_are_told_of_their_group_as_hyperpod_tells_them(capacity: Capacity) -> None:
    show = f'cat "$SAGEMAKER_RESOURCE_CONFIG_PATH" >{capacity.dir}/config.json\n'
    capacity.create(wish(1, **scripted(capacity, show)))
    capacity.wait_group("InService", 1, deadline_s=90.0)
    config = "\n".join(capacity.lines("config.json"))
    assert f'"{GROUP}"' in config
    assert capacity.instances()["n1"] in config


def test_a_script_that_cannot_run_twice_on_a_machine_is_told_with_its_last_word_and_gets_another_machine(
    capacity: Capacity,
) -> None:
    """It leaves a folder behind before its download fails: the second try there fails for the folder."""
    half = f"mkdir {capacity.dir}/half-$STEWARD_INSTANCE_ID\necho 'curl: (7) no server' >&2\nexit 7\n"
    capacity.create(wish(1, minimum=1, **scripted(capacity, half)))

    def told() -> list[str]:
        return [text for text in capacity.group_events("slot", since=capacity.began) if "exit status" in text]

    capacity.wait("both failures are told", lambda: len(told()) >= 2, 60.0)
    first, second = told()[:2]
    assert "exit status 7" in first
    assert "no server" in first
    assert "File exists" in second
    before = capacity.instances()["n1"]
    assert "File exists" in capacity.explain("n1")
    capacity.wait("another machine is taken", lambda: capacity.instances().get("n1", before) != before, 60.0)
    mend(capacity, "echo all is well\n")
    capacity.wait_group("InService", 1, deadline_s=90.0)
