"""Faults that a test does to the simulated cluster: the clock, the controller, half of the nodes."""

from dataclasses import replace

from steward.model.node import Node
from tests.chaos.bench import Backup, Bench
from tests.chaos.trouble import Controller
from tests.fakes.group_world import GroupWorld
from tests.fakes.run_world import RunWorld


def set_clock(bench: Bench, by: float) -> None:
    """The clock of the controller's host is set. What lasts goes on lasting as long; what was stamped stays."""
    world = bench.world
    for machine in world.machines.alive.values():
        machine.shifted += by if machine.ready_at <= world.now else 0.0
        machine.ready_at += by
        machine.agent_back_at += by
        machine.slurmd_back_at += by
        machine.muted_at += by
    for id, run in world.slurm.runs.items():
        run.begin += by if id not in world.opted else 0.0  # no such job waits for Slurm's clock alone: see page.py
        run.step_started += by
        run.completing_until += by
        run.still_since = None if run.still_since is None else run.still_since + by
    world.watches.shift(by)
    for name in world.slurm.silent_since:
        world.slurm.silent_since[name] += by
    if isinstance(world, GroupWorld):
        world.setting_up.update({token: at + by for token, at in world.setting_up.items()})
    if isinstance(world, RunWorld) and world.one is not None:
        world.one.due += by
        world.one.away_until += by
    world.now += by
    world.set_by += by
    bench.trouble.bite()


def kill_controller(bench: Bench) -> None:
    """kill -9 of slurmctld: of nodes and partitions it has lost what changed in the last two seconds."""
    bench.trouble.controller = Controller.DEAD
    bench.world.slurm_away = True
    if bench.saved:
        _restore(bench, bench.saved[0])


def start_controller(bench: Bench) -> None:
    bench.trouble.controller = Controller.FINE
    bench.world.slurm_away = False
    bench.world.slurm.began = bench.world.now


def hang_controller(bench: Bench) -> None:
    bench.trouble.controller = Controller.HUNG
    bench.world.slurm_away = True


def _restore(bench: Bench, backup: Backup) -> None:
    slurm = bench.world.slurm
    slurm.nodes = {name: _as_before(node, slurm.nodes.get(name)) for name, node in backup.nodes.items()}
    slurm.partitions = dict(backup.partitions)
    bench.watch.foreign = {name for name in bench.watch.foreign if slurm.nodes[name].is_drain}


def _as_before(old: Node, new: Node | None) -> Node:
    """What people set is as before; what a node tells of itself it tells again."""
    if new is None:
        return old
    return replace(old, slurmd_started=new.slurmd_started, responding=new.responding)


def cut_half(bench: Bench) -> None:
    world = bench.world
    for name in sorted(world.machines.firsts())[::2]:
        world.machines.cut_off(name, world.now)
        bench.trouble.bite()


def heal(bench: Bench, *, frozen: bool = True) -> None:
    for name in sorted(bench.world.machines.firsts()):
        bench.world.machines.unmute(name, frozen=frozen)


def kill_agent(bench: Bench, node: str) -> None:
    world = bench.world
    for machine in world.machines.alive.values():
        if machine.node == node:
            machine.agent_back_at = world.now + 3.0
            bench.trouble.bite()


def restart_services(bench: Bench, node: str) -> None:
    world = bench.world
    for machine in world.machines.alive.values():
        if machine.node == node:
            world.machines.restart_services(machine.node, world.now, 3.0)
            bench.trouble.bite()


def damage_store(bench: Bench) -> None:
    """Under a head that has read it."""
    if bench.cycle.latest is None:
        bench.turn()
    bench.disk.damage()


def lose_head(bench: Bench, after_s: float) -> None:
    bench.trouble.bite()
    bench.take_over(after_s)
