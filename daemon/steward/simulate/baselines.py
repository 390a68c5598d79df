"""What happens without Steward: plain Slurm with people, and a system that replaces the node while the job waits."""

from steward.model.ids import JobId
from steward.model.node import Reason
from steward.simulate.machines import Machine, shows
from steward.simulate.world import Operator, World


class PlainSlurm(Operator):
    """Slurm's defaults: scripts requeue themselves when they fail, and people take faulty nodes out.

    Slurm itself finds only dead nodes. A faulty GPU stays in service, and jobs fail on it again, until a person has
    noticed; the person then reboots the machine, or has it repaired.
    """

    def __init__(self, world: World) -> None:
        """Take the world."""
        self._world = world

    def failed(self, job: JobId) -> None:
        """Let the script requeue its job."""
        self._world.slurm.requeue(job)

    def faulted(self, machine: Machine) -> None:
        """Let a person notice later."""
        self._world.after(self._world.numbers.notice_s, lambda: self._notice(machine))

    def _notice(self, machine: Machine) -> None:
        world, fault = self._world, machine.fault
        if fault is None:
            return
        world.slurm.drain(machine.node, Reason(text="faulty", user="root", at=world.now))
        if machine.node not in world.slurm.used:
            world.slurm.down(machine.node)
        if fault.reboot_cures:
            world.reboot(machine.node, cures=True)
            world.after(world.numbers.reboot_s + 1.0, lambda: world.slurm.give_back(machine.node))
        else:
            world.after(fault.repair_s, lambda: world.repair(machine.node))


class Replacement(Operator):
    """A system that finds each fault at once, and starts the job again when the faulty node is replaced."""

    def __init__(self, world: World) -> None:
        """Take the world."""
        self._world = world

    def failed(self, job: JobId) -> None:
        """Start a job again at once that no node's fault ended."""
        self._world.slurm.requeue(job, delay_s=0.0)

    def faulted(self, machine: Machine) -> None:
        """Take the node out, and replace it."""
        world = self._world
        late = world.numbers.event_s if shows(machine) else 0.0
        world.after(late, lambda: self._take_out(machine))

    def _take_out(self, machine: Machine) -> None:
        world = self._world
        job = world.slurm.used.get(machine.node)
        world.slurm.drain(machine.node, Reason(text="replaced", user="root", at=world.now))
        if job is not None:
            world.slurm.requeue(job, lost=machine.node, delay_s=world.numbers.replacement_s)
        world.slurm.down(machine.node)
        world.after(world.numbers.replacement_s, lambda: world.repair(machine.node))
