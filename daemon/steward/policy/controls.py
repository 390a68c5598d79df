"""What a person changes: pause, and let actions go on. Memory in, memory out."""

from dataclasses import replace
from types import MappingProxyType

from steward.model.memory import Memory


def pause(memory: Memory) -> Memory:
    """No node is touched until `resume_actions`; jobs are still resumed. Cases stand still, and so do their clocks."""
    return replace(memory, paused=True)


def resume_actions(memory: Memory, now: float) -> Memory:
    """Act again: ends the pause, resets the breakers, and from now on judges the nodes of incidents one by one."""
    incidents = {kind: replace(i, over=now) if i.over is None else i for kind, i in memory.incidents.items()}
    return replace(
        memory,
        paused=False,
        breakers=MappingProxyType({}),
        breakers_reset=now,
        incidents=MappingProxyType(incidents),
        noted=MappingProxyType({key: at for key, at in memory.noted.items() if not key.startswith("withheld:")}),
    )
