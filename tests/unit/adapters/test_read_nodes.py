"""Single nodes are read without scontrol also while all of them are being read, and never with partitions of before."""

from collections.abc import Callable, Mapping, Sequence

from steward.adapters.slurm.commands import Commands
from steward.adapters.slurm.read_nodes import NodeReader
from steward.adapters.slurm.single import Single, Told
from steward.adapters.slurm.versions import Version
from steward.model.ids import NodeName
from steward.model.node import NodeBase

N1, N2 = NodeName("n1"), NodeName("n2")
_LINE = (
    "NodeName={name} CoresPerSocket=1 CPUAlloc=0 CPUTot=2 CPULoad=0.1 AvailableFeatures=(null) ActiveFeatures=(null)"
    " Gres=(null) NodeAddr=10.0.0.1 NodeHostName={name} Port=6818 OS=Linux RealMemory=100 AllocMem=0 FreeMem=9"
    " Sockets=1 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 {parts}BootTime=10 SlurmdStartTime=20"
    " CfgTRES=cpu=2 AllocTRES="
)


def nothing() -> None:
    return None


class World:
    """Two nodes in one partition. `during` is called while all nodes are being read, when the answer is on its way."""

    def __init__(self) -> None:
        self.partition, self.state, self.serial = "main", "IDLE", 1
        self.by_command = 0
        self.during: Callable[[], object] = nothing
        self.while_asked: Callable[[], object] = nothing
        self.reader = NodeReader(_Commands(self), _Single(self))

    def change(self, partition: str) -> None:
        self.partition, self.serial = partition, self.serial + 1

    def line(self, name: str, *, parts: bool) -> str:
        return _LINE.format(name=name, state=self.state, parts=f"Partitions={self.partition} " if parts else "")


class _Commands(Commands):
    def __init__(self, world: World) -> None:
        super().__init__(conf="", timeout_s=1.0, max_bytes=1 << 20)
        self._world = world

    def version(self) -> Version:
        return Version(text="22.05.8", release=(22, 5))

    def read(self, *argv: str) -> str:
        return "SlurmdPort              = 6818\n"

    def look(self, *argv: str, env: Mapping[str, str] = {}) -> str:
        answer = "".join(f"{self._world.line(name, parts=True)}\n" for name in (N1, N2))
        self._world.during()
        return answer

    def some_nodes(self, *argv: str, env: Mapping[str, str]) -> str:
        self._world.by_command += 1
        return f"{self._world.line(argv[-1], parts=True)}\n"


class _Single(Single):
    def __init__(self, world: World) -> None:
        super().__init__(argv=("true",))
        self._world = world

    def nodes(self, names: Sequence[NodeName], version: Version) -> Told | None:
        told = Told(lines={name: self._world.line(name, parts=False) for name in names}, parts=self._world.serial)
        self._world.while_asked()
        return told


def test_a_node_is_read_without_a_command() -> None:
    world = World()
    world.reader.whole()
    world.state = "DOWN"
    assert world.reader.some([N1])[N1].base is NodeBase.DOWN
    assert world.by_command == 0


def test_also_while_all_nodes_are_being_read() -> None:
    world = World()
    world.reader.whole()
    world.state = "DOWN"
    found = []
    world.during = lambda: found.append(world.reader.some([N1])[N1])
    world.reader.whole()
    assert (found[0].base, found[0].partitions) == (NodeBase.DOWN, frozenset({"main"}))
    assert world.by_command == 0


def test_partitions_that_change_while_all_nodes_are_being_read_are_told_as_they_are() -> None:
    world = World()
    world.reader.whole()
    found = []

    def look() -> None:
        world.change("other")
        found.append(world.reader.some([N1])[N1])

    world.during = look
    world.reader.whole()
    assert (found[0].partitions, world.by_command) == (frozenset({"other"}), 1)
    world.during = nothing
    assert world.reader.some([N2])[N2].partitions == {"other"}


def test_partitions_that_all_nodes_are_found_in_while_one_is_asked_for_are_told_as_they_are() -> None:
    world = World()
    world.reader.whole()

    def look() -> None:
        world.while_asked = nothing
        world.change("other")
        world.reader.whole()

    world.while_asked = look
    assert world.reader.some([N1])[N1].partitions == {"other"}


def test_after_a_look_that_found_no_change_nodes_are_still_read_without_a_command() -> None:
    world = World()
    for _ in range(3):
        world.reader.whole()
        world.reader.some([N1, N2])
    assert world.by_command == 0


def test_after_a_change_and_one_more_whole_look_they_are_again() -> None:
    world = World()
    world.reader.whole()
    world.change("other")
    world.reader.whole()
    world.reader.whole()
    assert world.reader.some([N1])[N1].partitions == {"other"}
    assert world.by_command == 0
