"""The numbers of the simulated world, each with what it means and where it comes from.

`--assume NAME=VALUE` changes one. The table in docs/simulate.md is made from the fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

_MEASURED = "measured: performance.md"
_OURS = "our assumption"


def _number(default: float, text: str, source: str, most: float = 31_536_000.0) -> Any:
    return field(default=default, metadata={"text": text, "source": source, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldNumbers:
    """Times in seconds and shares of the simulated world."""

    requeue_s: float = _number(121.0, "Slurm starts no requeued job before this time", "Slurm's default; " + _MEASURED)
    look_s: float = _number(
        4.0, "longest time until slurmctld looks at an eligible job; half of it on average", _MEASURED
    )
    clean_up_s: float = _number(1.0, "COMPLETING of a run whose nodes are all well", _MEASURED)
    linger_s: float = _number(
        21.0, "COMPLETING of a run whose batch host died, until Steward ends its remains", "measured: decision 0013"
    )
    let_go_s: float = _number(0.3, "from Steward's order until these remains are ended", "measured: decision 0013")
    slurm_notices_s: float = _number(
        394.0, "from a node's death until Slurm sets it DOWN (SlurmdTimeout 300)", _MEASURED
    )
    event_s: float = _number(0.1, "from a line of the kernel log to the head", _MEASURED)
    ping_s: float = _number(1.35, "from a missed heartbeat until the node is known to be silent", "head/watch.py")
    act_s: float = _number(0.1, "from a decision of the head to its effect in Slurm", _MEASURED)
    check_s: float = _number(1.0, "the checks that the head asks for", "at most 2 s (resume_policy.py)")
    crash_s: float = _number(
        30.0, "from a GPU's or link's fault until the job's script ends by itself", _OURS + ": NCCL and srun give up"
    )
    watchdog_s: float = _number(
        600.0, "until a job that stands still ends itself", "PyTorch's default timeout with NCCL"
    )
    reset_s: float = _number(15.0, "a GPU's reset", _OURS)
    reboot_s: float = _number(600.0, "a reboot, until the agent is connected again", _OURS + ": servers with 8 GPUs")
    launch_s: float = _number(
        1200.0, "a new machine of a provider, until its agent is connected", "as HyperPod's (performance.md)"
    )
    person_s: float = _number(
        86_400.0, "until a person has repaired a machine that no reboot cured", _OURS + ": one working day"
    )
    reset_cures: float = _number(0.85, "share of faults of GPU memory that a reset cures", "as cured_rebooted", 1.0)
    reboot_cures: float = _number(
        0.85, "share of faults found by checks that a reboot cures", "assess.md: 0.75 to 0.97", 1.0
    )
    revive_cures: float = _number(
        0.6, "share of dead machines that a reboot brings back", "assess.md: 0.35 to 0.85", 1.0
    )
    maintained_s: float = _number(14_400.0, "a host's unplanned maintenance", _OURS)
    notice_s: float = _number(
        1800.0, "plain Slurm: until a person drains a node on which jobs fail", _OURS + ", by day and by night"
    )
    submit_s: float = _number(1800.0, "until the user submits a job again that ended badly", _OURS)
    replacement_s: float = _number(
        1200.0,
        "the other baseline: from the fault until the replaced node serves",
        "HyperPod: 20 to 30 min (performance.md)",
    )

    def rows(self) -> Iterator[tuple[str, float, str, str]]:
        """Yield name, value, meaning and source of each number."""
        for one in fields(self):
            yield one.name, getattr(self, one.name), one.metadata["text"], one.metadata["source"]

    def but(self, name: str, value: float) -> "WorldNumbers":
        """Return these numbers with another value of one; raise ValueError with one line if there is none such."""
        known = {one.name: one for one in fields(self)}
        if name not in known:
            raise ValueError(f"{name} is no number of the simulation; there are {', '.join(sorted(known))}")
        most = known[name].metadata["most"]
        if not 0 <= value <= most:
            raise ValueError(f"{name}={value:g} is not possible: give 0 to {most:g}")
        changed: dict[str, Any] = {name: value}
        return replace(self, **changed)


BEATS_PER_S, SHORTEST_BEAT_S = 250.0, 0.5
"""At most so many heartbeats a second come in (head/hub.py); the default of `head.heartbeat_s`."""


def beat_s(nodes: int, least: float = SHORTEST_BEAT_S) -> float:
    """Return the time between two heartbeats of an agent of a cluster of this size."""
    return max(least, nodes / BEATS_PER_S)


def table() -> str:
    """Return the numbers as a Markdown table, for docs/simulate.md."""
    rows = [f"| `{name}` | {value:g} | {text} | {source} |" for name, value, text, source in WorldNumbers().rows()]
    return "\n".join(["| name | value | what it is | source |", "|---|--:|---|---|", *rows, ""])


if __name__ == "__main__":
    print(table(), end="")
