"""Explain to people an instance group with its slots and its gate, and an elastic run with its jobs."""

from steward.model.desired import Desired, ElasticPolicy
from steward.model.elastic import ElasticRun, RunPhase
from steward.model.group import Group, RolloutState
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.node_names import fold
from steward.model.observed import Observed
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep
from steward.model.text import ago, clean, count_noun, span, time_left, times
from steward.policy.draft import Draft
from steward.policy.facts.run_rules import rules_of
from steward.policy.facts.serving import serves
from steward.policy.groups.slot_facts import may_still_come
from steward.policy.groups.slot_scene import SlotScene, why_not_yet
from steward.policy.groups.slot_table import deadline
from steward.policy.guards.bring_up import HOUR_S, failures, limits, scope_of
from steward.views.awaited import of_slot

_SHOWN = 20
"""At most this many slots are listed one by one."""


def explain_group(name: str, seen: Observed, want: Desired, memory: Memory, now: float) -> tuple[str, ...]:
    """Return all lines about a group, most important first. Pure; decides nothing."""
    draft = Draft(seen, want, memory, now)
    group = draft.groups.get(name)
    if group is None or draft.cluster is None:
        return clean([f"There is no instance group {name}."])
    lines = [_counts(group, draft), *_status(group, draft), *_gate(group, draft), *_rollout(group, draft)]
    lines += [*_bring_ups(group, draft), *_operations(group, draft), *_away(group, draft), *_missing(group, draft)]
    return clean(lines)


def _counts(group: Group, draft: Draft) -> str:
    return f"{group.name} ({group.role.value}): {group.status.value}; {_numbers(group, draft)}."


def _numbers(group: Group, draft: Draft) -> str:
    return f"{len(_working(group, draft))} in service, at least {group.goal.minimum} wanted, {group.goal.target} in all"


def _working(group: Group, draft: Draft) -> list[SlotRecord]:
    """Return the group's slots that are in service now."""
    return [slot for slot in draft.slots.members(group.name) if serves(slot, group, draft)]


def _status(group: Group, draft: Draft) -> list[str]:
    """Return the group's message, and the deadline for its minimum while one runs."""
    lines = [f"{group.message}."] if group.message else []
    if not group.status.is_gated or group.minimum_since is None:
        return lines
    at = group.minimum_since + draft.want.capacity.minimum_timeout_s
    good = group.good
    to = f"its last good size ({good.target}, at least {good.minimum})" if good else "nothing, as it is new"
    return [*lines, f"Its minimum must be there {time_left(at, draft.now)}; otherwise it goes back to {to}."]


def _gate(group: Group, draft: Draft) -> list[str]:
    if not group.partition:
        return []
    gate, shown = draft.gates.get(group.partition), draft.seen.partitions.get(group.partition)
    state = f", Slurm shows it {shown.state.value}" if shown else ""
    if gate is None:
        return [f"Partition {group.partition}: Steward keeps no gate there{state}."]
    if gate.yielded is not None:
        since = ago(gate.yielded, draft.now)
        return [f"Partition {group.partition}: it was set by hand {since}{state}; Steward leaves it so."]
    return [f"Its partition is {'open' if gate.open else 'closed: jobs wait, none starts'}{state}: {gate.why}"]


def _rollout(group: Group, draft: Draft) -> list[str]:
    rollout = group.rollout
    if rollout is None:
        return []
    if rollout.finished is not None:
        said = f" ({rollout.why})" if rollout.why else ""
        return [f"Its last software update: {rollout.state.value}, over {ago(rollout.finished, draft.now)}{said}."]
    members = draft.slots.members(group.name)
    done = sum(slot.step is SlotStep.SERVING and slot.version == group.version for slot in members)
    way = "back to the version before" if rollout.state is RolloutState.ROLLBACK_IN_PROGRESS else "to the new version"
    line = f"Its software update is {rollout.state.value}: {done} of {len(members)} nodes are brought {way}"
    failures = f", {count_noun(rollout.failures, 'bring-up')} failed ({rollout.why})" if rollout.failures else ""
    wait = f"; the next batch begins {time_left(rollout.next_batch_at, draft.now)}" if rollout.next_batch_at else ""
    return [f"{line}{failures}{wait}."]


def _bring_ups(group: Group, draft: Draft) -> list[str]:
    """Return the line about the group's tripped breaker, or about failures that bring it near to tripping."""
    breaker = draft.breakers.get(scope_of(group.name))
    if breaker is not None:
        return [f"Paused {ago(breaker.tripped, draft.now)}: {breaker.text}."]
    lately = sum(at > draft.now - HOUR_S for at in failures(group, draft))
    in_row, per_hour = limits(group, draft)
    limit = f"{in_row} in a row, or {per_hour}, pause the group"
    return [f"{lately} of its bring-ups failed within the last hour ({limit})."] if lately else []


def _operations(group: Group, draft: Draft) -> list[str]:
    open_ones = [op for op in draft.operations.values() if op.finished is None and group.name in op.after]
    return [
        f"Scaling {op.id}, for {span(draft.now - op.at)}: to {op.after[group.name].target} instances."
        for op in sorted(open_ones, key=lambda op: (op.at, op.id))
        if group.name not in op.superseded
    ]


def _away(group: Group, draft: Draft) -> list[str]:
    """Return the line about slots in service whose nodes cannot work now."""
    working = {slot.node for slot in _working(group, draft)}
    serving = [slot.node for slot in draft.slots.members(group.name) if slot.step is SlotStep.SERVING]
    away = sorted(node for node in serving if node not in working)
    if not away:
        return []
    return [f"In service but drained, silent or under repair now: {fold(away)}."]


def _missing(group: Group, draft: Draft) -> list[str]:
    """Return a line for each slot that is not in service, the next one to come first."""
    moving = [slot for slot in draft.slots.members(group.name) if slot.step is not SlotStep.SERVING]
    moving.sort(key=lambda slot: (slot.is_leaving, slot.next_try, slot.created, slot.logical))
    lines = [f"{slot.node}: {_on_its_way(slot, group, draft)}" for slot in moving[:_SHOWN]]
    return lines + ([f"... and {len(moving) - _SHOWN} more on their way."] if len(moving) > _SHOWN else [])


_PURPOSES = {Purpose.STAY: "", Purpose.LEAVE: ", leaves the group", Purpose.RENEW: ", is made anew"}


def _on_its_way(slot: SlotRecord, group: Group, draft: Draft) -> str:
    """Return the step of a slot that is not in service, and what it waits for."""
    text = f"{_step(slot, group, draft)}."
    is_told = slot.step is SlotStep.WAITING or (slot.step is SlotStep.DRAIN and slot.deadline is not None)
    return text if is_told else f"{text} {of_slot(slot, deadline(slot.step, draft.want), draft)}"


def _step(slot: SlotRecord, group: Group, draft: Draft) -> str:
    text = f"{slot.step.value} for {span(draft.now - slot.entered)}{_PURPOSES[slot.purpose]}"
    if slot.hitch is not Hitch.NONE:
        text += f"; failed {times(slot.tries)} ({slot.hitch.value}): {slot.trouble}"
    if slot.hitch is not Hitch.NONE and slot.next_try > draft.now:
        text += f"; next try {time_left(slot.next_try, draft.now)}"
    elif slot.step is SlotStep.WAITING:
        wait = why_not_yet(SlotScene(record=slot, group=group, draft=draft))
        text += f"; {wait}" if wait else "; its turn has come"
    if slot.step is SlotStep.DRAIN and slot.deadline is not None:
        text += f"; its jobs are waited for {span(slot.deadline - draft.now)} more"
    if slot.step is SlotStep.END and may_still_come(SlotScene(record=slot, group=group, draft=draft)):
        text += f"; its launch of {ago(slot.launched or draft.now, draft.now)} may still make a machine, which is ended"
    return text


def slot_lines(node: NodeName, draft: Draft) -> list[str]:
    """Return the node's place in its group; if its slot is on its way, also the reason and what it waits for."""
    slot = draft.slots.get(node)
    group = draft.groups.get(slot.group) if slot else None
    if slot is None or group is None:
        return []
    lines = [f"Slot {slot.logical} of group {group.name}: {_step(slot, group, draft)}."]
    if slot.step is SlotStep.SERVING and slot.purpose is Purpose.STAY:
        return lines
    return [*lines, f"Reason: {slot.why}", of_slot(slot, deadline(slot.step, draft.want), draft)]


def closed_partitions(job: Job | None, draft: Draft) -> list[str]:
    """Return why a queued job does not start: a closed gate of its partition, or too few nodes in service."""
    if job is None or not job.is_pending:
        return []
    lines = []
    for name in (word.strip() for word in job.partition.split(",")):
        gate = draft.gates.get(name)
        if gate is not None and not gate.open and gate.yielded is None:
            lines.append(f"The job waits because its partition is closed: {gate.why}")
            lines += [line for group in _behind(name, draft) for line in _lack(group, draft)]
        else:
            lines += _too_few(job, name, draft)
    return lines


def _too_few(job: Job, partition: str, draft: Draft) -> list[str]:
    """Return the lines about an open partition with fewer nodes in service than the job asks for; empty otherwise."""
    groups = _behind(partition, draft)
    serving, asked = sum(len(_working(group, draft)) for group in groups), max(job.node_count, 1)
    if not groups or serving >= asked:
        return []
    text = f"The job asks for {asked} node{'s' * (asked != 1)}, and partition {partition} has {serving} in service."
    return [text, *(line for group in groups for line in _lack(group, draft))]


def _behind(partition: str, draft: Draft) -> list[Group]:
    return [draft.groups[name] for name in sorted(draft.groups) if draft.groups[name].partition == partition]


def _lack(group: Group, draft: Draft) -> list[str]:
    """Return the group's numbers, its deadline, and the slot that is likely to come next."""
    lines = [f"Group {group.name} is {group.status.value}: {_numbers(group, draft)}.", *_status(group, draft)]
    coming = [slot for slot in draft.slots.members(group.name) if slot.is_coming and not slot.is_leaving]
    soonest = min(coming, key=lambda s: (s.step is SlotStep.WAITING, s.next_try, s.created, s.logical), default=None)
    if soonest is not None:
        lines.append(f"Next may come {soonest.node}: {_on_its_way(soonest, group, draft)}")
    return lines


_LAST = 8


def elastic_lines(id: JobId, draft: Draft) -> list[str]:
    """Return the lines about an elastic run's base or replica job; empty for any other job."""
    run = draft.elastic.get(id)
    if run is not None:
        return run_lines(run, draft.want.elastic, draft.now)
    of = draft.elastic.run_of(id)
    if of is None:
        return []
    text = f"Replica of elastic run {of.id}: a preemptible part of it, given back when others need its nodes."
    return [text, *run_lines(of, draft.want.elastic, draft.now)[:2]]


def run_lines(run: ElasticRun, site: ElasticPolicy, now: float) -> list[str]:
    """Return a run's size, what it waits for, and its changes of size with their reasons."""
    rules = rules_of(run.spec, run.base, site)
    sizes = ", ".join(map(str, rules.spec.sizes)) if rules is not None else "none"
    has = f"{_has(run)} (sizes: {sizes})" if run.is_open else "is over"
    lines = [f"Elastic run {run.id} {has}; {count_noun(run.changes, 'change')} of size so far."]
    if run.is_open:
        lines.append(_waits_for(run, site, now))
    lines += [f"{ago(change.at, now)}: {change.why}{_took(change.at, change.done)}." for change in run.events[-_LAST:]]
    return lines


def _has(run: ElasticRun) -> str:
    """Return in words on how many nodes the run trains."""
    match run.phase:
        case RunPhase.WAITING:
            return f"forms with {count_noun(run.base, 'node')}, its base"
        case RunPhase.REFORMING:
            return f"forms with {count_noun(len(run.members), 'node')}"
        case RunPhase.DRAINING if run.ordered_members:
            return f"has {count_noun(len(run.members), 'node')} and goes to {len(run.ordered_members)}"
        case _:
            return f"has {count_noun(len(run.members), 'node')}"


def _waits_for(run: ElasticRun, site: ElasticPolicy, now: float) -> str:
    if run.why_no_coordinator:
        return f"The run stays at its size: it has no coordinator ({run.why_no_coordinator})."
    if run.phase is RunPhase.WAITING:
        return (
            "The run waits for its first step with all nodes of its base. It stays at their number where its processes "
            "are not started by torchrun --rdzv-backend=steward or python -m steward.job.launch."
        )
    if run.is_changing or run.phase is RunPhase.FAULTED:
        return f"The run is changing its size ({run.phase.value} for {span(now - run.entered)}): {run.why}."
    if not site.enabled or run.paused:
        return f"The run does not grow: {'a person paused it' if run.paused else 'the site does not let runs grow'}."
    if not run.steerable:
        return (
            "The run does not grow: its program never asks whether to save (resize_wanted), so that a growth would "
            "throw away what it did since its last checkpoint."
        )
    if run.cool_until > now:
        return (
            f"The run grows again {time_left(run.cool_until, now)} at the earliest: a change of size was made or tried."
        )
    asked = [one for one in run.replicas if one.ending is None and one.job is None]
    if asked:
        return f"The run has asked for {sum(one.nodes for one in asked)} more nodes."
    wish = f" (a person asked for {run.wish} nodes)" if run.wish is not None else ""
    return (
        "The run grows when enough idle, sound nodes are there that no waiting job needs, and growing gains more than "
        f"its pause costs{wish}."
    )


def _took(at: float, done: float | None) -> str:
    return f" (first step {done - at:.1f} s later)" if done is not None and done > at else ""
