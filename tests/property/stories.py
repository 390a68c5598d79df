"""Stories: what befalls a cluster, as data that Hypothesis can make and shrink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hypothesis import strategies as st

from steward.model.desired import Desired
from steward.model.health import Advice, Scope, Severity
from steward.model.ids import JobId, NodeName
from steward.model.instance import SPARES, Slot
from steward.model.mark import SPARE
from steward.model.repair_policy import LadderPolicy
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy
from tests.builders.want import a_want, acts, but
from tests.fakes.deep_world import DeepWorld
from tests.fakes.head import Head
from tests.fakes.world import World
from tests.fakes.world_cluster import ON
from tests.property.law import Law
from tests.property.liveness import Liveness

NODES = 6
FEW = but(ResumePolicy(), max_resumes=2, hang_least_s=6.0, hang_most_s=15.0, hang_quiet_s=12.0, hang_stacks_s=4.0)
ANY = ResumeMode.parse("any:1,age=0,hang=1")
STEP_S = 0.7
RUNS_AGAIN_S = 600.0
"""Slurm itself calls a node DOWN after 300 s, and lets a requeued job that nobody hurries on wait for 121 s."""
QUICK = acts(
    settle_degraded_s=0.5,
    drain_deadline_s=20.0,
    launch_timeout_s=60.0,
    provision_timeout_s=30.0,
    verify_timeout_s=30.0,
    release_deadline_h=400.0 / 3600,
    capacity_backoff_s=(2.0, 4.0),
    agents_grace_s=5.0,
    breaker_min=3,
    node_repairs=50,
    replacements_per_hour=100,
    budgets=LadderPolicy(
        reset_timeout_s=20.0,
        reboot_timeout_s=60.0,
        hardware_repairs=50,
        replacements_per_day=50,
        cooldown_s=10.0,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """One thing that happens `after_s` the one before."""

    after_s: float
    kind: str
    node: NodeName
    size: int = 1


def _admin(flag: str, text: str) -> Callable[[Head, Blow], None]:
    return lambda head, blow: head.world.slurm.admin(blow.node, flag, text, head.world.now)


def _everyone_silent(head: Head, blow: Blow) -> None:
    for node in head.world.slurm.nodes:
        head.world.machines.restart_agent(node, head.world.now, 4.0 * blow.size)


def _check(severity: Severity, advice: Advice) -> Callable[[Head, Blow], None]:
    def fail(head: Head, blow: Blow) -> None:
        head.world.machines.fail_check(blow.node, severity, advice, head.world.now, f"check-{blow.size}")

    return fail


GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"


def _light(severity: Severity, advice: Advice, target: str) -> Callable[[Head, Blow], None]:
    """A fault that a light rung helps against, but for every third."""

    def fail(head: Head, blow: Blow) -> None:
        cure = frozenset({advice}) if blow.size < 3 else frozenset[Advice]()
        world = head.world
        world.machines.fail_check(
            blow.node, severity, advice, world.now, f"light-{blow.size}", hardware=target, cured_by=cure
        )

    return fail


def _doubt(head: Head, blow: Blow) -> None:
    world = head.world
    world.machines.fail_check(blow.node, Severity.SUSPECT, Advice.REBOOT, world.now, f"doubt-{blow.size}")


def _shared(head: Head, blow: Blow) -> None:
    world = head.world
    world.machines.fail_check(
        blow.node, Severity.FATAL, Advice.REPLACE, world.now, f"scratch-{blow.size}", scope=Scope.CLUSTER
    )


def _slurms(text: str) -> Callable[[Head, Blow], None]:
    return lambda head, blow: head.world.slurm.take_out(blow.node, text, head.world.now)


def _submit(head: Head, blow: Blow) -> None:
    mode = None if blow.size == 3 else ON
    bug = 2.0 if blow.size == 2 else None
    job = head.world.submit(min(blow.size + 1, 3), spare=blow.size > 1, works_s=20.0, bug_after_s=bug, mode=mode)
    if mode is not None and isinstance(head.watch, Law):
        head.watch.opted.add(job)


def _submit_stepping(head: Head, blow: Blow) -> None:
    """A job that tells its steps: under any:N, on evidence only, or not opted in."""
    mode = (ANY, ON, None)[blow.size - 1]
    job = head.world.submit(2, works_s=20.0, mode=mode, step_s=STEP_S)
    if mode is not None:
        opted_in(head, job)


def _hang(head: Head, blow: Blow) -> None:
    """The jobs on the node, or (`size` 3) all of them at about the same time."""
    for job in list(head.world.slurm.jobs.values()):
        if blow.size == 3 or blow.node in job.nodes:
            head.world.stand_still(job.id)


def _cancel(head: Head, blow: Blow) -> None:
    for job in list(head.world.slurm.jobs):
        head.world.slurm.cancel(job, head.world.now)


def _undrain(head: Head, blow: Blow) -> None:
    if head.world.slurm.nodes[blow.node].is_foreign:
        head.world.slurm.undrain(blow.node)


def _hang_slurm(head: Head, blow: Blow) -> None:
    head.world.slurm_hangs_until = head.world.now + 4.0 * blow.size


def _fail_writes(head: Head, blow: Blow) -> None:
    head.world.slurm_writes_fail_until = head.world.now + 4.0 * blow.size


def _hang_provider(head: Head, blow: Blow) -> None:
    head.world.provider_hangs_until = head.world.now + 4.0 * blow.size


def _kill_head(head: Head, blow: Blow) -> None:
    head.kill_at = head.point + blow.size


def _away(head: Head, blow: Blow) -> None:
    """The head is stopped for a while; the world goes on."""
    head.die()
    head.world.advance(10.0 * blow.size)
    head.world.restart_head()


BLOWS: dict[str, Callable[[Head, Blow], None]] = {
    "kill": lambda head, blow: head.world.machines.kill(blow.node),
    "freeze": lambda head, blow: head.world.machines.mute(blow.node, head.world.now),
    "power off": lambda head, blow: head.world.machines.power_off(blow.node, head.world.now),
    "thaw": lambda head, blow: head.world.machines.unmute(blow.node),
    "agent dies": lambda head, blow: head.world.machines.restart_agent(blow.node, head.world.now, 3.0 * blow.size),
    "all agents vanish": _everyone_silent,
    "xid": _check(Severity.FATAL, Advice.REPLACE),
    "xid, reboot": _check(Severity.FATAL, Advice.REBOOT),
    "degraded": _check(Severity.DEGRADED, Advice.REPLACE),
    "service down": _light(Severity.DEGRADED, Advice.RESTART_SERVICE, "munge"),
    "GPU wants a reset": _light(Severity.FATAL, Advice.RESET_GPU, GPU),
    "agent refuses to mend": lambda head, blow: head.world.machines.mend_errors.extend(["not allowed"] * blow.size),
    "suspect": _doubt,
    "shared fault": _shared,
    "Kill task failed": _slurms("Kill task failed (JobId=7 StepId=0)"),
    "Prolog error": _slurms("Prolog error"),
    "gres too low": _slurms("gres/gpu count too low (7 < 8)"),
    "Bad core count": _slurms("Bad core count"),
    "admin drains": _admin("DRAIN", "$(rm -rf /) my own maintenance"),
    "admin undrains": _undrain,
    "Action:Replace": _admin("FAIL", "Action:Replace"),
    "Action:Reboot": _admin("FAIL", "Action:Reboot"),
    "submit": _submit,
    "submit, with steps": _submit_stepping,
    "hang": _hang,
    "cancel": _cancel,
    "refuse launches": lambda head, blow: head.world.machines.refusals.extend(["capacity: none left"] * blow.size),
    "break launches": lambda head, blow: head.world.machines.refusals.extend(["quota exceeded"] * blow.size),
    "lose actions": lambda head, blow: head.mishaps.extend(["lost"] * blow.size),
    "refuse actions": lambda head, blow: head.mishaps.extend(["refused"] * blow.size),
    "double actions": lambda head, blow: head.mishaps.extend(["twice"] * blow.size),
    "Slurm hangs": _hang_slurm,
    "Slurm's writes fail": _fail_writes,
    "provider hangs": _hang_provider,
    "head killed": _kill_head,
    "head away": _away,
}


def _mend(head: Head, blow: Blow) -> None:
    """A person repairs the machine and gives the node back, unless it is a spare that waits."""
    head.world.machines.mend(blow.node, head.world.now)
    node = head.world.slurm.nodes[blow.node]
    if node.mark != SPARE and node.is_drain:
        head.world.slurm.undrain(blow.node)


BY_HAND = {**BLOWS, "mend": _mend}
"""What befalls a site with fixed machines."""


def blow(kind: str, node: str = "n1", *, after_s: float = 0.0, size: int = 1) -> Blow:
    return Blow(after_s=after_s, kind=kind, node=NodeName(node), size=size)


blows = st.builds(
    Blow,
    after_s=st.sampled_from([0.0, 0.3, 1.0, 3.0, 8.0, 20.0]),
    kind=st.sampled_from(sorted(BLOWS)),
    node=st.integers(1, NODES).map(lambda i: NodeName(f"n{i}")),
    size=st.integers(1, 3),
)
stories = st.lists(blows, min_size=1, max_size=12)
site_stories = st.lists(
    st.builds(
        Blow,
        after_s=st.sampled_from([0.0, 0.3, 1.0, 3.0, 8.0, 20.0]),
        kind=st.sampled_from(sorted(BY_HAND)),
        node=st.sampled_from(["n1", "n2", "n3", "n4", "n5", "n6", "s1", "s2"]).map(NodeName),
        size=st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


def a_head(
    resume: ResumePolicy = FEW,
    works_s: float = 30.0,
    modes: Mapping[str, str] = MappingProxyType({}),
    sweep_s: float | None = None,
) -> Head:
    """A head over a healthy cluster with two opted-in jobs, watched by the law."""
    world = DeepWorld.deep_of(NODES)
    slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
    return _started(world, a_want(repair=QUICK, resume=resume, slots=slots, modes=modes), works_s, sweep_s)


def a_site_head(spares: int = 2, works_s: float = 30.0) -> Head:
    """The same over fixed machines with spares."""
    world = DeepWorld.deep_of(NODES, spares)
    names = frozenset(name for name in world.slurm.nodes if name.startswith("s"))
    slots = {node: Slot(node=node, group=SPARES if node in names else "main", fixed=True) for node in world.slurm.nodes}
    return _started(world, a_want(repair=QUICK, resume=FEW, slots=slots, spares=names), works_s)


def _started(world: World, want: Desired, works_s: float, sweep_s: float | None = None) -> Head:
    law = Law(want)
    law.hang.hangs = lambda job: world.slurm.runs[job].hangs
    law.live, law.world = Liveness(world, RUNS_AGAIN_S), world
    head = Head(world=world, want=want, watch=law, sweep_s=sweep_s)
    for job in (world.submit(2, works_s=works_s, step_s=STEP_S), world.submit(2, works_s=works_s + 10, spare=True)):
        opted_in(head, job)
    head.run(2.0)
    return head


def opted_in(head: Head, job: JobId) -> None:
    assert isinstance(head.watch, Law)
    head.watch.opted.add(job)


def dies_at(head: Head, dies: Callable[[], bool]) -> None:
    """The head asks `dies` at each point. In a copy of the story no plan is made twice: the story itself has them all,
    and those of a head that was killed are in stories with such a blow."""

    def here() -> bool:
        if is_copy := dies():
            assert isinstance(head.watch, Law)
            head.watch.asks_again = False
        return is_copy

    head.dies = here


def tell(head: Head, story: list[Blow]) -> None:
    """Let it all happen, then let things calm down."""
    for blow in story:
        head.run(blow.after_s)
        BY_HAND[blow.kind](head, blow)
    head.run(30.0)
    for node in head.world.slurm.nodes:
        head.world.machines.unmute(node)
    head.mishaps.clear()
    head.world.machines.refusals.clear()
