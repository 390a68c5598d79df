"""One machine of the simulated provider: it boots, runs an agent and a slurmd, and can die in several ways."""

from dataclasses import dataclass
from functools import cache

from steward.model.health import Advice, Finding, Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.mend import MendReport
from steward.model.setup import SetupReport

REGISTER_S = 0.5
RECONNECT_S = 0.4


@cache
def _incarnation(id: InstanceId, boot: int) -> Incarnation:
    return Incarnation(instance=id, boot=BootId(f"{id}-b{boot}"))


@dataclass(slots=True, kw_only=True)
class Machine:
    """One instance. `mute`: frozen or cut off, nothing comes from it any more."""

    id: InstanceId
    node: NodeName
    token: str
    ready_at: float
    boot: int = 1
    mute: bool = False
    cut: bool = False
    """It works on, but neither Slurm's controller nor the head reaches it."""
    off: bool = False
    """Its power is gone, and the provider says so."""
    muted_at: float = 0.0
    agent: bool = True
    agent_back_at: float = 0.0
    took_leave: bool = False
    """Its agent said that it was told to end, until it is back."""
    slurmd: bool = True
    slurmd_back_at: float = 0.0
    findings: tuple[Finding, ...] = ()
    checked_at: float = 0.0
    setup: SetupReport | None = None
    mend: MendReport | None = None
    cured_by: frozenset[Advice] = frozenset()
    """Light rungs that help against what it has."""
    shifted: float = 0.0
    """By how much the clock was set since it started: what it said then does not change."""

    @property
    def started(self) -> float:
        """As it told when it started."""
        return self.ready_at - self.shifted

    @property
    def incarnation(self) -> Incarnation:
        return _incarnation(self.id, self.boot)

    def is_up(self, now: float) -> bool:
        return now >= self.ready_at and not self.mute

    def agent_lives(self, now: float) -> bool:
        return self.is_up(now) and self.agent and now >= max(self.ready_at, self.agent_back_at) + RECONNECT_S

    def agent_speaks(self, now: float) -> bool:
        return self.agent_lives(now) and not self.cut

    def slurmd_speaks(self, now: float) -> bool:
        return (
            self.is_up(now)
            and self.slurmd
            and not self.cut
            and now >= max(self.ready_at + REGISTER_S, self.slurmd_back_at)
        )
