"""The breaker of a group whose new machines keep failing.

The breaker stops further launches for the group until a person resets it, or until the machines are to be made
from something else. A software update has its own limit of failures and its own way back: meanwhile nothing is counted
here.
"""

import hashlib
from dataclasses import replace

from steward.model.events import Level
from steward.model.group import GivenUp, Group, GroupStatus
from steward.model.memory import Breaker
from steward.model.slot import Hitch, SlotFact, SlotRecord, SlotStep
from steward.policy.draft import Draft
from steward.policy.facts.incidents import AGENTS, is_going_on
from steward.policy.guards.breaker import DAY_S

MORE_PER_HOUR = 2
"""How many more bring-ups may fail within an hour than in a row."""
FAILURES_SHARE = 0.1
"""In a large group, as many as this share of its instances may fail."""


PREFIX = "bringup:"
HOUR_S = 3600.0
_GIVEN_UP = (SlotFact.FAILED, SlotFact.UNFIT, SlotFact.LATE, SlotFact.LOST)
_BLAMED = (Hitch.SCRIPT, Hitch.BOOTSTRAP, Hitch.CHECKS)
"""Failures that may be due to a machine's image or scripts; a lack of capacity is not."""


def scope_of(group: str) -> str:
    """Return the name of the group's bring-up breaker."""
    return f"{PREFIX}{group}"


def why_paused(group: str, draft: Draft) -> str:
    """Return why no machine is requested for the group now; empty if machines are requested."""
    scope = scope_of(group)
    return f"paused by breaker {scope} (`steward breaker reset {scope}`)" if scope in draft.breakers else ""


def digest_of_recipe(group: Group) -> str:
    """Return a short digest of everything that decides how a machine of the group is made."""
    parts = (group.version, group.lifecycle, group.types, group.on_start_checks)
    # a new recipe begins without failures
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def note_bring_up(before: SlotRecord, after: SlotRecord, fact: SlotFact, group: Group, draft: Draft) -> None:
    """Count a machine that was given up before it served, and trip the breaker at its limit."""
    is_given_up = fact in _GIVEN_UP and after.step in (SlotStep.END, SlotStep.WAITING)
    if not is_given_up or after.hitch not in _BLAMED or before.version != group.version:
        return
    # while agents everywhere are silent, the machine's image or scripts are not to blame
    if group.status is GroupStatus.SYSTEM_UPDATING or is_going_on(AGENTS, draft):
        return
    _remember(
        GivenUp(token=before.token, recipe=digest_of_recipe(group), at=draft.now), draft.groups[group.name], draft
    )
    if scope_of(group.name) not in draft.breakers and (why := _too_many(group, draft)):
        _trip(group, f"{why}, the last one {before.node}: {after.trouble}", draft)


def follow_bring_ups(draft: Draft) -> None:
    """Close the breakers of groups that are gone, updated now, or made from something else."""
    for scope, breaker in sorted(draft.breakers.items()):
        if not scope.startswith(PREFIX):
            continue
        group = draft.groups.get(name := scope.removeprefix(PREFIX))
        if group is None or group.status is GroupStatus.SYSTEM_UPDATING or digest_of_recipe(group) != breaker.recipe:
            del draft.breakers[scope]
            what = "the group is gone" if group is None else "its image or its scripts were changed"
            draft.tell("breaker.closed", f"breaker {scope}: closed, {what}", group=name)


def failures(group: Group, draft: Draft) -> list[float]:
    """Return when machines with the group's present recipe were given up, since its breaker was last reset."""
    reset = max(draft.breakers_reset, draft.breaker_resets.get(scope_of(group.name), 0.0))
    since, made_from = max(reset, draft.now - DAY_S), digest_of_recipe(group)
    known = draft.groups.get(group.name, group)
    return sorted(one.at for one in known.given_up if one.at > since and one.recipe == made_from)


def limits(group: Group, draft: Draft) -> tuple[int, int]:
    """Return how many failed bring-ups trip the breaker, in a row and within an hour.

    In a large group it is a share of the group.
    """
    rules = draft.want.capacity
    share = int(FAILURES_SHARE * group.goal.target)
    return max(rules.bringup_failures, share), max(rules.bringup_failures + MORE_PER_HOUR, share)


def _remember(new: GivenUp, group: Group, draft: Draft) -> None:
    """Remember a machine that was given up."""
    others = (one for one in group.given_up if one.token != new.token and one.at > draft.now - DAY_S)
    draft.groups[group.name] = replace(group, given_up=(*others, new))


def _too_many(group: Group, draft: Draft) -> str:
    """Return why the breaker must trip; empty if it need not."""
    times, (most_in_row, most_per_hour) = failures(group, draft), limits(group, draft)
    served = [slot.served or 0.0 for slot in draft.slots.members(group.name) if slot.version == group.version]
    in_row = sum(at > max(served, default=0.0) for at in times)
    if in_row >= most_in_row:
        return f"{in_row} bring-ups in a row failed (limit {most_in_row})"
    lately = sum(at > draft.now - HOUR_S for at in times)
    return f"{lately} bring-ups failed within an hour (limit {most_per_hour})" if lately >= most_per_hour else ""


def _trip(group: Group, why: str, draft: Draft) -> None:
    """Trip the group's bring-up breaker and say why."""
    scope = scope_of(group.name)
    text = (
        f"breaker {scope}: {why}; no machine is asked for until `steward breaker reset {scope}`, "
        "or until the group's software or scripts are changed"
    )
    draft.breakers[scope] = Breaker(
        scope=scope, tripped=draft.now, text=text, patience_s=0.0, recipe=digest_of_recipe(group)
    )
    draft.tell("breaker.tripped", text, level=Level.ERROR, group=group.name)
