"""Orders of people: pause, resume actions, reset breakers, arm checks. Each function returns the changed memory."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.health import TrialState
from steward.model.memory import Memory
from steward.model.order import Refusal, RefusalKind


def pause(memory: Memory) -> Memory:
    """Return the memory of a paused head.

    Until `resume_actions` no node is touched, no case moves and no deadline of a case runs; jobs are still resumed.
    """
    return replace(memory, paused=True)


def resume_actions(memory: Memory, now: float) -> Memory:
    """Return the memory of a head that acts again: not paused, no breaker tripped.

    Incidents end: from now on each of their nodes is judged by itself.
    """
    incidents = {kind: replace(i, over=now) if i.over is None else i for kind, i in memory.incidents.items()}
    return replace(
        memory,
        paused=False,
        breakers=MappingProxyType({}),
        breakers_reset=now,
        breaker_resets=MappingProxyType({}),
        incidents=MappingProxyType(incidents),
        noted=_without_notes(memory, lambda note: True),
    )


def reset_breakers(memory: Memory, scope: str, now: float) -> Memory:
    """Return the memory with the breaker of `scope` closed, or every tripped breaker if `scope` is empty.

    Raises Refusal if no such breaker is tripped.
    """
    scopes = frozenset({scope} if scope else memory.breakers)
    if not scopes or not scopes <= memory.breakers.keys():
        tripped = ", ".join(sorted(memory.breakers)) or "none"
        what = f"breaker {scope} is not tripped" if scope else "no breaker is tripped"
        raise Refusal(RefusalKind.NOT_FOUND, f"{what} (tripped: {tripped})")
    texts = [memory.breakers[each].text for each in scopes]
    # nodes taken out before now do not count for this scope, or for any: else the next wider breaker would trip at once
    # for the same nodes
    resets = {**memory.breaker_resets, scope: now} if scope else {}
    return replace(
        memory,
        breakers=MappingProxyType({each: b for each, b in memory.breakers.items() if each not in scopes}),
        breakers_reset=memory.breakers_reset if scope else now,
        breaker_resets=MappingProxyType(resets),
        noted=_without_notes(memory, lambda note: any(text in note for text in texts)),
    )


def arm_check(memory: Memory, check: str, who: str, *, armed: bool) -> Memory:
    """Return the memory with every known version of a site check armed, or refused if `armed` is false.

    Raises Refusal if no version is known.
    """
    versions = {key: trial for key, trial in memory.trials.items() if trial.check == check}
    if not versions:
        known = ", ".join(sorted({trial.check for trial in memory.trials.values()})) or "none"
        text = f"no version of {check} was seen (seen: {known}); a check of ours has its mode in its table of [checks]"
        raise Refusal(RefusalKind.NOT_FOUND, text)
    state = TrialState.ARMED if armed else TrialState.REFUSED
    text = f"{'armed' if armed else 'disarmed'} by {who}"
    changed = {key: replace(trial, state=state, text=text) for key, trial in versions.items()}
    return replace(memory, trials=MappingProxyType({**memory.trials, **changed}))


def _without_notes(memory: Memory, is_over: Callable[[str], bool]) -> Mapping[str, float]:
    """Return the notes without the `withheld:` ones that are over: what is still withheld is reported again."""
    kept = {k: at for k, at in memory.noted.items() if not (k.startswith("withheld:") and is_over(k))}
    return MappingProxyType(kept)
