"""The faults of the matrix: what each does to a bench, for how long, and where it cannot mean anything."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos import blows
from tests.chaos.bench import Bench
from tests.chaos.trouble import Command, Point

LASTS_S = 25.0
KILLS = 3
STOPS, STOPPED_S = 2, 60.0
TAKES_OVER_S = 4.5
"""The lease, and a follower's next look at it."""
HANDOVER_S = 0.5
CLOCKS_APART_S = 30.0
BLIND_S = 6.0
"""How long a leader that cannot read Slurm leads on."""


def _nothing(bench: Bench, node: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`begin` gets the node that the row is about. `is_kill`: the end must be the very same as without a fault.

    `needs`: what a row must do for the fault to be felt ("" for nothing).
    """

    name: str
    begin: Callable[[Bench, str], None]
    end: Callable[[Bench, str], None] = _nothing
    lasts_s: float = LASTS_S
    is_kill: bool = False
    needs: str = ""


def _kill(point: Point) -> Callable[[Bench, str], None]:
    def begin(bench: Bench, node: str) -> None:
        bench.trouble.kill_at, bench.trouble.kills, bench.trouble.stops = point, KILLS, None

    return begin


def _command(kind: Command) -> Callable[[Bench, str], None]:
    def begin(bench: Bench, node: str) -> None:
        bench.trouble.command = kind

    return begin


def _provider(late: bool) -> Callable[[Bench, str], None]:
    def begin(bench: Bench, node: str) -> None:
        bench.trouble.provider_late = late

    return begin


def _munge(down: bool) -> Callable[[Bench, str], None]:
    def begin(bench: Bench, node: str) -> None:
        bench.trouble.munge_down = bench.world.machines.shut = down

    return begin


def _clock(by: float) -> Callable[[Bench, str], None]:
    return lambda bench, node: blows.set_clock(bench, by)


def _kill_column(point: Point) -> Column:
    return Column(name=f"stewardd killed {point.value}", begin=_kill(point), is_kill=True, lasts_s=0.0)


def _command_column(name: str, kind: Command) -> Column:
    return Column(name=name, begin=_command(kind), end=_command(Command.FINE))


def _stop(point: Point) -> Callable[[Bench, str], None]:
    def begin(bench: Bench, node: str) -> None:
        def stand_still() -> None:
            bench.take_over(TAKES_OVER_S)
            bench.run(STOPPED_S)

        bench.trouble.kill_at, bench.trouble.kills, bench.trouble.stops = point, STOPS, stand_still

    return begin


def stopped(point: Point) -> str:
    """The name of the column in which the head stands still there."""
    return f"stewardd stopped for a minute {point.value}, another head leads"


def _stop_column(point: Point) -> Column:
    return Column(name=stopped(point), begin=_stop(point), is_kill=True, lasts_s=0.0)


NO_FAULT = Column(name="no fault", begin=_nothing, lasts_s=0.0)
COLUMNS = (
    *(_kill_column(point) for point in Point),
    Column(name="agent killed", begin=lambda bench, node: blows.kill_agent(bench, node), lasts_s=0.0),
    Column(
        name="slurmd and agent restarted at once",
        begin=lambda bench, node: blows.restart_services(bench, node),
        lasts_s=0.0,
    ),
    Column(
        name="slurmctld killed, started again",
        begin=lambda bench, node: blows.kill_controller(bench),
        end=lambda bench, node: blows.start_controller(bench),
        lasts_s=6.0,
    ),
    Column(
        name="slurmctld hung",
        begin=lambda bench, node: blows.hang_controller(bench),
        end=lambda bench, node: blows.start_controller(bench),
    ),
    _command_column("scontrol hangs", Command.HANGS),
    _command_column("scontrol prints garbage", Command.GARBAGE),
    _command_column("scontrol fails", Command.FAILS),
    Column(
        name="provider acts, answers too late",
        begin=_provider(True),
        end=_provider(False),
        needs="the provider",
    ),
    Column(
        name="disk full",
        begin=lambda bench, node: bench.disk.fill(),
        end=lambda bench, node: bench.disk.free(),
    ),
    Column(
        name="store locked",
        begin=lambda bench, node: bench.disk.lock(),
        end=lambda bench, node: bench.disk.unlock(),
    ),
    Column(
        name="store damaged",
        begin=lambda bench, node: blows.damage_store(bench),
        is_kill=True,
        lasts_s=0.0,
    ),
    Column(name="clock +1 h", begin=_clock(3600.0), lasts_s=0.0),
    Column(name="clock -1 h", begin=_clock(-3600.0), lasts_s=0.0),
    Column(
        name="half of the nodes cut off",
        begin=lambda bench, node: blows.cut_half(bench),
        end=lambda bench, node: blows.heal(bench, frozen=False),
    ),
    Column(name="munge down on the head", begin=_munge(True), end=_munge(False)),
)


def _lead_passes(after_s: float) -> Callable[[Bench, str], None]:
    """To the other head, whose clock is 30 s ahead or behind; without the database it waits for that."""

    def begin(bench: Bench, node: str) -> None:
        bench.trouble.bite()
        bench.take_over(after_s, ahead_s=CLOCKS_APART_S - bench.ahead_s)

    return begin


def _blind(bench: Bench, node: str) -> None:
    """It gives its lead to the other head, which is not cut off."""
    before, bench.trouble.command = bench.trouble.command, Command.FAILS
    bench.run(BLIND_S)
    bench.trouble.command = before
    _lead_passes(HANDOVER_S)(bench, node)


def _database(is_there: bool) -> Callable[[Bench, str], None]:
    """A server that both heads use: without it no head reads or writes, and the leader's lease runs out."""

    def change(bench: Bench, node: str) -> None:
        bench.has_database = is_there
        bench.trouble.bites += not is_there

    return change


TWO_HEADS = (
    *(_stop_column(point) for point in Point),
    Column(
        name="stewardd and its machine gone, another head leads",
        begin=lambda bench, node: blows.lose_head(bench, TAKES_OVER_S),
        is_kill=True,
        lasts_s=0.0,
    ),
    Column(
        name="stewardd gone, the other head's clock is 30 s off",
        begin=_lead_passes(TAKES_OVER_S),
        is_kill=True,
        lasts_s=0.0,
    ),
    Column(
        name="handover, the other head's clock is 30 s off", begin=_lead_passes(HANDOVER_S), is_kill=True, lasts_s=0.0
    ),
    Column(name="stewardd cut off from slurmctld only, another head leads", begin=_blind, lasts_s=0.0),
    Column(name="the heads' database away", begin=_database(False), end=_database(True)),
)
"""The faults of a head that has a second one beside it."""
