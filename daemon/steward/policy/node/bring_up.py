"""The breaker of bring-ups: a group whose new machines fail one after the other asks for no more of them.

It stays so until a person resets it, or until the machines are to be made from something else. A software update has
its own limit of failures and its own way back: meanwhile nothing is counted here.
"""

import hashlib

from steward.model.events import Level
from steward.model.group import Group, GroupStatus
from steward.model.memory import Breaker
from steward.model.slot import Hitch, SlotRecord, SlotStep
from steward.policy.draft import Draft
from steward.policy.groups.slot_table import SlotFact
from steward.policy.node.correlate import AGENTS, covers

PREFIX = "bringup:"
HOUR_S = 3600.0
_GIVEN_UP = (SlotFact.FAILED, SlotFact.UNFIT, SlotFact.LATE, SlotFact.LOST)
_BLAMED = (Hitch.SCRIPT, Hitch.BOOTSTRAP, Hitch.CHECKS)
"""Failures that what a machine is made from may be blamed for; want of capacity is none."""


def scope_of(group: str) -> str:
    return f"{PREFIX}{group}"


def why_paused(group: str, draft: Draft) -> str:
    """Why no machine is asked for now; empty while that goes on."""
    scope = scope_of(group)
    return f"paused by breaker {scope} (`steward breaker reset {scope}`)" if scope in draft.breakers else ""


def recipe(group: Group) -> str:
    """A short digest of everything that decides how a machine of the group is made: a new one begins without
    failures."""
    parts = (group.version, group.lifecycle, group.types, group.on_start_checks)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def note_bring_up(before: SlotRecord, after: SlotRecord, fact: SlotFact, group: Group, draft: Draft) -> None:
    """Count a machine that was given up before it served; one too many trips the breaker.

    Not while agents everywhere are silent: then it is not what the machine was made from.
    """
    is_given_up = fact in _GIVEN_UP and after.step in (SlotStep.END, SlotStep.WAITING)
    if not is_given_up or after.hitch not in _BLAMED or before.version != group.version:
        return
    if group.status is GroupStatus.SYSTEM_UPDATING or covers(AGENTS, draft):
        return
    draft.noted[f"{_failed(group)}{before.token}"] = draft.now
    if scope_of(group.name) not in draft.breakers and (why := _too_many(group, draft)):
        _trip(group, f"{why}, the last one {before.node}: {after.trouble}", draft)


def follow_bring_ups(draft: Draft) -> None:
    """Close the breakers of groups that are gone, updated now, or made from something else."""
    for scope, breaker in sorted(draft.breakers.items()):
        if not scope.startswith(PREFIX):
            continue
        group = draft.groups.get(name := scope.removeprefix(PREFIX))
        if group is None or group.status is GroupStatus.SYSTEM_UPDATING or recipe(group) != breaker.about:
            del draft.breakers[scope]
            what = "the group is gone" if group is None else "its image or its scripts were changed"
            draft.tell("breaker.closed", f"breaker {scope}: closed, {what}", group=name)


def failures(group: Group, draft: Draft) -> list[float]:
    """When machines made as the group wants them now were given up, since its breaker was last reset."""
    since = max(draft.breakers_reset, draft.breaker_resets.get(scope_of(group.name), 0.0))
    prefix = _failed(group)
    return sorted(at for key, at in draft.noted.items() if at > since and key.startswith(prefix))


def limits(group: Group, draft: Draft) -> tuple[int, int]:
    """The numbers of failed bring-ups that are too many, in a row and within an hour; in a large group a share of
    it."""
    rules = draft.want.capacity
    share = int(rules.bringup_fraction * group.goal.target)
    return max(rules.bringup_failures, share), max(rules.bringup_failures_per_hour, share)


def _failed(group: Group) -> str:
    return f"{scope_of(group.name)}:{recipe(group)}:"


def _too_many(group: Group, draft: Draft) -> str:
    """Empty while there are not."""
    times, (most_in_row, most_per_hour) = failures(group, draft), limits(group, draft)
    served = [slot.served or 0.0 for slot in draft.slots.members(group.name) if slot.version == group.version]
    in_row = sum(at > max(served, default=0.0) for at in times)
    if in_row >= most_in_row:
        return f"{in_row} bring-ups in a row failed (limit {most_in_row})"
    lately = sum(at > draft.now - HOUR_S for at in times)
    return f"{lately} bring-ups failed within an hour (limit {most_per_hour})" if lately >= most_per_hour else ""


def _trip(group: Group, why: str, draft: Draft) -> None:
    scope = scope_of(group.name)
    text = (
        f"breaker {scope}: {why}; no machine is asked for until `steward breaker reset {scope}`, "
        "or until the group's software or scripts are changed"
    )
    draft.breakers[scope] = Breaker(scope=scope, tripped=draft.now, text=text, patience_s=0.0, about=recipe(group))
    draft.tell("breaker.tripped", text, level=Level.ERROR, group=group.name)
