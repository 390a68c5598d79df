"""AccountingPort: the same promises of the fake and of real slurmctld, slurmdbd and sacctmgr."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.slurm.accounting import SlurmAccounting
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.assess.history import LOST, REQUEUED
from steward.assess.outages import SILENT
from steward.model.accounting import QOS_MARK
from steward.model.action import CancelJob, Caps, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from steward.model.ids import JobId, Key
from steward.model.port_error import PortError
from steward.model.why import Why
from steward.ports import Permanent, Retryable, Stale
from steward_bed.bed import Backend, Bed, BedSpec
from steward_bed.beds import make
from tests.contract.accounting_worlds import AccountingWorld, RealWorld, a_fake
from tests.contract.assess_world import ODD_NAME, SetbackWorld

KEY, WHY = Key("quota"), Why(rule="quota.cap", text="a test wants it")
G, B = "stw-red-g", "stw-red-b"
_NEEDED = ("slurmctld", "slurmdbd", "mariadbd", "munged")


@pytest.fixture(scope="module")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Of the installed Slurm; with `--backend docker --slurm 24.11` of another."""
    backend = Backend(request.config.getoption("--backend"))
    missing = [name for name in _NEEDED if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if missing and backend is Backend.LOCAL:
        pytest.skip(f"no real accounting: {', '.join(missing)} not installed")
    bed = make(
        BedSpec(
            dir=Path(tempfile.mkdtemp(prefix="steward-acct-", dir="/tmp")),
            backend=backend,
            slurm=request.config.getoption("--slurm"),
            nodes=2,
            steward=False,
            accounting=True,
            hardware="CPUs=8 RealMemory=1000 Gres=gpu:l4:4",
        )
    )
    try:
        bed.up(print)
        yield bed
    finally:
        bed.down()


@pytest.fixture(params=["fake", "commands"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[AccountingWorld]:
    if request.param == "fake":
        yield a_fake()
        return
    bed: Bed = request.getfixturevalue("bed")
    if bed.spec.backend is Backend.DOCKER:  # its commands are in its search path, and enter its controller
        monkeypatch.setenv("PATH", bed.env["PATH"])
    conf = bed.env["SLURM_CONF"]
    jobs = CommandLineSlurm(conf=conf).jobs
    made = RealWorld(bed=bed, port=SlurmAccounting(conf=conf, jobs=jobs), jobs=jobs)
    yield made
    made.clear()


def set_qos(name: str = G, caps: Caps = (), **fields: object) -> SetQos:
    return SetQos(key=KEY, why=WHY, qos=name, caps=caps, **fields)  # type: ignore[arg-type]


def set_team(account: str = "red", **fields: object) -> SetTeam:
    return SetTeam(key=KEY, why=WHY, account=account, **fields)  # type: ignore[arg-type]


def move(job: JobId, *qos: str) -> MoveJob:
    return MoveJob(key=KEY, why=WHY, job=job, qos=qos)


def mark(job: JobId, priority: int | None, restart: int = 0) -> MarkJob:
    return MarkJob(key=KEY, why=WHY, job=job, priority=priority, restart=restart)


def with_a_team(world: AccountingWorld) -> None:
    """Account red, whose jobs are of QOS g (2 GPUs) and may be of b (none)."""
    world.add_account("red")
    world.port.set_qos(set_qos(B, (("gres/gpu", 0),)))
    world.port.set_qos(set_qos(G, (("gres/gpu", 2),)))
    world.port.set_team(set_team(add=frozenset({G, B}), default_qos=G))


def test_a_picture_says_what_slurm_enforces_and_counts(world: AccountingWorld) -> None:
    world.add_account("red")
    seen = world.picture()
    assert seen.reachable
    assert seen.enforces_limits
    assert {"cpu", "mem", "gres/gpu", "gres/gpu:l4"} <= seen.tracked
    assert "normal" in seen.qos
    assert seen.accounts["red"].name == "red"
    assert world.team("red").qos == {"normal"}


def test_a_qos_is_made_with_our_mark_and_changed_as_far_as_it_is_told(world: AccountingWorld) -> None:
    world.port.set_qos(set_qos(B))
    world.port.set_qos(set_qos(G, (("cpu", 48), ("gres/gpu", 2), ("mem", 2048)), priority=1000, grace_s=90))
    made = world.qos(G)
    assert (made.description, made.priority, made.grace_s) == (QOS_MARK, 1000, 90)
    assert dict(made.limits) == {"cpu": 48, "gres/gpu": 2, "mem": 2048}
    changes = (("cpu", None), ("gres/gpu", 0))
    world.port.set_qos(set_qos(G, changes, preempts=frozenset({B}), preempt_mode="REQUEUE"))
    changed = world.qos(G)
    assert dict(changed.limits) == {"gres/gpu": 0, "mem": 2048}
    assert (changed.priority, changed.preempts, changed.preempt_mode) == (1000, frozenset({B}), "REQUEUE")
    world.port.set_qos(set_qos(G, preempts=frozenset()))
    assert world.qos(G).preempts == frozenset()


def test_a_qos_that_an_admin_made_is_left_alone_whatever_its_name(world: AccountingWorld) -> None:
    world.add_qos(G, "the dean's own")
    with pytest.raises(Permanent, match="not ours"):
        world.port.set_qos(set_qos(G, (("cpu", 1),)))
    with pytest.raises(Permanent, match="not ours"):
        world.port.drop_qos(DropQos(key=KEY, why=WHY, qos=G))
    assert dict(world.qos(G).limits) == {}


@pytest.mark.parametrize("name", ["normal", "stw-red-x", "stw-red-g,normal", "stw-red-g set", "", "stw--g", "stw-R-g"])
def test_a_name_that_is_not_ours_never_reaches_slurm(world: AccountingWorld, name: str) -> None:
    acts: tuple[Callable[[], None], ...] = (
        lambda: world.port.set_qos(set_qos(name, (("cpu", 1),))),
        lambda: world.port.drop_qos(DropQos(key=KEY, why=WHY, qos=name)),
        lambda: world.port.set_team(set_team(add=frozenset({name}))),
        lambda: world.port.set_team(set_team("root", caps=(("cpu", 1),))),
        lambda: world.port.set_team(set_team("red name=blue", caps=(("cpu", 1),))),
        lambda: world.port.set_qos(set_qos(G, (("cpu=1,mem", 1),))),
    )
    for act in acts:
        with pytest.raises(Permanent):
            act()


def test_a_team_keeps_what_it_had_and_gets_ours_beside_it(world: AccountingWorld) -> None:
    with_a_team(world)
    world.port.set_team(set_team(caps=(("gres/gpu", 3),)))
    team = world.team("red")
    assert team.qos == {"normal", G, B}
    assert (team.default_qos, dict(team.limits)) == (G, {"gres/gpu": 3})
    world.port.set_team(set_team(drop=frozenset({G, B}), default_qos="", caps=(("gres/gpu", None),)))
    team = world.team("red")
    assert team.qos == {"normal"}
    assert (team.default_qos, dict(team.limits)) == ("", {})


def test_a_team_that_would_be_left_without_a_qos_gets_one_of_the_sites_in_the_same_change(
    world: AccountingWorld,
) -> None:
    with_a_team(world)
    world.port.set_team(set_team(drop=frozenset({G, B}), default_qos="", keep="normal"))
    assert (world.team("red").qos, world.team("red").default_qos) == (frozenset({"normal"}), "")
    with pytest.raises(Permanent):
        world.port.set_team(set_team(keep="normal qos=x"))


def test_a_default_that_some_user_may_not_use_is_refused_and_said_so(world: AccountingWorld) -> None:
    """sacctmgr refuses it with the exit status of success."""
    world.add_account("red")
    world.port.set_qos(set_qos(G))
    world.set_user("red", qos="normal")
    with pytest.raises(Stale, match="default"):
        world.port.set_team(set_team(add=frozenset({G}), default_qos=G, caps=(("cpu", 4),)))
    team = world.team("red")
    assert team.qos == {"normal", G}
    assert (team.default_qos, dict(team.limits)) == ("", {"cpu": 4})


def test_a_qos_that_is_some_users_default_stays_and_everything_else_goes(world: AccountingWorld) -> None:
    with_a_team(world)
    world.port.set_team(set_team(caps=(("gres/gpu", 3),)))
    world.set_user("red", default_qos=G)
    with pytest.raises(Stale, match="default"):
        world.port.set_team(set_team(drop=frozenset({G, B}), default_qos="", caps=(("gres/gpu", None),)))
    team = world.team("red")
    assert team.qos == {"normal", G, B}
    assert (team.default_qos, dict(team.limits)) == ("", {})
    assert [each.default_qos for each in world.picture().associations if each.account == "red" and each.user] == [G]
    world.port.set_team(set_team(drop=frozenset({B})))
    assert world.team("red").qos == {"normal", G}
    with pytest.raises(Stale, match="may still use"):
        world.port.drop_qos(DropQos(key=KEY, why=WHY, qos=G))


def test_a_qos_that_may_preempt_one_that_is_not_there_is_refused(world: AccountingWorld) -> None:
    world.port.set_qos(set_qos(G))
    with pytest.raises(PortError):
        world.port.set_qos(set_qos(G, preempts=frozenset({B})))
    assert world.qos(G).preempts == frozenset()


def test_a_team_without_an_account_is_told_of(world: AccountingWorld) -> None:
    with pytest.raises(Stale, match="no account red"):
        world.port.set_team(set_team(caps=(("cpu", 1),)))


def test_an_account_is_made_with_our_mark_and_goes_only_when_it_is_ours_and_empty(world: AccountingWorld) -> None:
    world.add_account("physics")
    for name in ("red", "physics"):
        world.port.make_account(name)
    assert world.picture().accounts["red"].organization == "steward"
    assert world.picture().accounts["physics"].organization == "physics"
    with pytest.raises(Stale):
        world.port.remove_account("physics")
    with pytest.raises(Permanent):
        world.port.remove_account("root")
    for _ in range(2):
        world.port.remove_account("red")
    assert set(world.picture().accounts) & {"red", "physics"} == {"physics"}


def test_a_limit_holds_a_job_back_and_a_higher_one_lets_it_run(world: AccountingWorld) -> None:
    with_a_team(world)
    first, second = world.submit("red", gpus=2), world.submit("red", gpus=1)
    assert world.running(first).qos == G
    world.wait("both GPUs count", lambda: world.qos(G).used.get("gres/gpu") == 2)
    assert world.job(second).is_pending
    world.port.set_qos(set_qos(G, (("gres/gpu", 3),)))
    world.running(second)


def test_a_waiting_job_moves_to_a_qos_that_its_account_may_use_and_to_no_other(world: AccountingWorld) -> None:
    with_a_team(world)
    world.add_account("blue")
    world.port.set_qos(set_qos("stw-blue-b"))
    job, running = world.submit("red", hold=True), world.submit("red")
    world.port.move_job(move(job, B))
    world.wait("it is there", lambda: world.job(job).qos == B)
    with pytest.raises(Permanent, match="may not use"):
        world.port.move_job(move(job, "stw-blue-b"))
    with pytest.raises(Permanent):
        world.port.move_job(move(job))
    world.running(running)
    with pytest.raises(Stale):
        world.port.move_job(move(running, B))
    with pytest.raises(Stale):
        world.port.move_job(move(JobId(999_999), B))


def test_of_an_array_the_tasks_that_wait_move(world: AccountingWorld) -> None:
    with_a_team(world)
    array = world.submit("red", tasks=3)
    world.step()
    world.port.move_job(move(array, B))
    world.wait("the rest is there", lambda: world.job(array).qos == B or world.job(array).is_active)


def test_a_mark_stays_over_a_requeue_until_it_is_taken_away(world: AccountingWorld) -> None:
    with_a_team(world)
    job = world.submit("red")
    world.running(job)
    world.port.mark_job(mark(job, 5_000_000))
    world.wait("it is marked", lambda: world.job(job).priority == 5_000_000)
    with pytest.raises(Stale):
        world.port.mark_job(mark(job, 6_000_000, restart=1))
    world.requeue(job)
    world.wait("it waits", lambda: world.job(job).is_pending and not world.job(job).is_completing)
    assert world.job(job).priority == 5_000_000
    world.port.mark_job(mark(job, None, restart=1))
    world.wait("it is Slurm's again", lambda: 0 < world.job(job).priority < 5_000_000)


def test_a_mark_of_a_running_job_is_taken_away_while_it_runs(world: AccountingWorld) -> None:
    """On every Slurm: what was marked and has borrowed again may be taken by preemption."""
    with_a_team(world)
    job = world.submit("red")
    world.running(job)
    world.port.mark_job(mark(job, 5_000_000))
    world.wait("it is marked", lambda: world.job(job).priority == 5_000_000)
    world.port.mark_job(mark(job, None))
    world.wait("it is Slurm's again", lambda: 0 < world.job(job).priority < 5_000_000)
    assert world.job(job).is_active


def test_a_hold_by_a_person_is_not_lifted_with_a_mark(world: AccountingWorld) -> None:
    with_a_team(world)
    job = world.submit("red", hold=True)
    world.port.mark_job(mark(job, None))
    assert world.job(job).is_held


def test_a_waiting_job_asks_for_fewer_nodes(world: AccountingWorld) -> None:
    with_a_team(world)
    job = world.submit("red", hold=True)
    world.port.set_node_count(SetNodeCount(key=KEY, why=WHY, job=job, least=1, most=2))
    world.wait("it is said", lambda: (world.job(job).node_count, world.job(job).most_nodes) == (1, 2))
    with pytest.raises(Permanent):
        world.port.set_node_count(SetNodeCount(key=KEY, why=WHY, job=job, least=3, most=2))


def test_a_job_in_another_run_is_not_ended(world: AccountingWorld) -> None:
    with_a_team(world)
    job = world.submit("red")
    world.running(job)
    with pytest.raises(Stale):
        world.port.cancel_job(CancelJob(key=KEY, why=WHY, job=job, restart=1))
    assert world.job(job).is_active
    world.port.cancel_job(CancelJob(key=KEY, why=WHY, job=job))
    world.wait("it has ended", lambda: not world.job(job).is_active)


def test_a_qos_goes_when_no_job_and_no_account_has_it(world: AccountingWorld) -> None:
    with_a_team(world)
    job = world.submit("red", hold=True)
    drop = DropQos(key=KEY, why=WHY, qos=G)
    world.port.set_team(set_team(drop=frozenset({B}), default_qos=""))
    with pytest.raises(Stale):
        world.port.drop_qos(drop)
    world.port.set_team(set_team(add=frozenset({B})))
    world.port.move_job(move(job, B))
    with pytest.raises(Stale):
        world.port.drop_qos(drop)
    world.port.set_team(set_team(drop=frozenset({G})))
    world.port.drop_qos(drop)
    assert G not in world.picture().qos
    world.port.drop_qos(drop)


def test_a_team_below_another_is_rid_of_its_qos_though_that_ones_went_before(world: AccountingWorld) -> None:
    """Deleting a QOS spoils the list of an account that had lost it, and `qos-=` then takes nothing from that."""
    with_a_team(world)
    world.add_account("blue", below="red")
    mine = ("stw-blue-g", "stw-blue-b")
    for name in mine:
        world.port.set_qos(set_qos(name))
    world.port.set_team(set_team("blue", add=frozenset(mine), drop=frozenset({G, B}), default_qos=mine[0]))
    assert world.team("blue").qos == {"normal", *mine}
    world.port.set_team(set_team(drop=frozenset({G, B}), default_qos=""))
    world.port.drop_qos(DropQos(key=KEY, why=WHY, qos=B))
    world.port.set_team(set_team("blue", drop=frozenset(mine), default_qos=""))
    assert world.team("blue").qos == {"normal"}
    for name in mine:
        world.port.drop_qos(DropQos(key=KEY, why=WHY, qos=name))


def test_without_slurmdbd_limits_are_seen_and_stay_and_jobs_still_move(world: AccountingWorld) -> None:
    with_a_team(world)
    running = world.submit("red", gpus=2)
    world.running(running)
    waiting = world.submit("red", hold=True)
    world.picture()
    world.kill_slurmdbd()
    with pytest.raises(Retryable):
        world.port.set_qos(set_qos(G, (("gres/gpu", 1),)))
    seen = world.picture()
    assert not seen.reachable
    assert dict(seen.qos[G].limits) == {"gres/gpu": 2}
    assert seen.qos[G].used["gres/gpu"] == 2
    world.port.move_job(move(waiting, B))
    world.wait("it moved", lambda: world.job(waiting).qos == B)
    world.start_slurmdbd()
    world.wait("it is reachable", lambda: world.picture().reachable)
    world.port.set_qos(set_qos(G, (("gres/gpu", 1),)))
    world.wait("slurmctld heard it of a slurmdbd that just came back", lambda: world.qos(G).limits["gres/gpu"] == 1)


def test_an_assessment_by_the_real_commands_finds_each_setback_once(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the user's own format of times and time zone are others than Slurm's."""
    monkeypatch.setenv("PATH", bed.env["PATH"] if bed.spec.backend is Backend.DOCKER else os.environ["PATH"])
    for name, value in (
        ("SLURM_CONF", bed.env["SLURM_CONF"]),
        ("TZ", "America/New_York"),
        ("SLURM_TIME_FORMAT", "relative"),
    ):
        monkeypatch.setenv(name, value)
    world = SetbackWorld(bed=bed)
    world.submit("array", "--array=1-3", script="true")
    world.submit("odd", "-wn1", script="exit 3", title=ODD_NAME)
    for name, node, requeue in (
        ("lost", "n2", "no-requeue"),
        ("lost again", "n2", "requeue"),
        ("by hand", "n1", "requeue"),
    ):
        world.submit(name, f"-w{node}", f"--{requeue}")
        world.runs(name)
    world.node("n2", "drain", "Not responding")  # or slurmd, which is well, has it back within the second
    world.node("n2", "down", "Not responding")
    bed.run(["scontrol", "requeue", str(world.jobs["by hand"])])
    world.wait("the lost jobs are off the node", lambda: not world.state("lost").startswith("RUNNING"))
    time.sleep(1.1)  # events are in whole seconds
    world.node("n2", "resume")
    past = world.read(
        "all is in the database", lambda past: (len(past.setbacks), past.states["COMPLETED"][0]) == (3, 3)
    )
    names = {number: name for name, number in world.jobs.items()}
    found = {(names[one.run.job], one.kind, one.node) for one in past.setbacks}
    assert found == {("lost", LOST, "n2"), ("lost again", LOST, "n2"), ("by hand", REQUEUED, "")}
    assert [(one.node, one.cause) for one in past.outages] == [("n2", SILENT)]
    assert past.states["FAILED"][0] == 1
    assert past.site.shapes == {"n1": (8, 4), "n2": (8, 4)}
    assert all(world.began <= one.run.start <= one.run.ended <= time.time() + 1 for one in past.setbacks)
    bed.run(["scancel", *map(str, world.jobs.values())])
