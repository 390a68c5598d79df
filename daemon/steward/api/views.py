"""Make the content of the read-only pages from one snapshot."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from steward.api.health_metrics import node_state
from steward.api.shapes import action_shape, shape
from steward.api.source import Source
from steward.api.user_names import user_name
from steward.model.agent_action import Action
from steward.model.case import Case
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.leadership import Heads
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.node_names import expand_nodes
from steward.model.observed import AgentDetail, AgentView
from steward.model.order import Approve, Refusal, RefusalKind
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.serving import current_counts
from steward.views.breakers import now_line, withheld_repairs
from steward.views.expected_agents import expected_agents
from steward.views.node_verdict import NodeVerdict, node_verdicts
from steward.workflows.cycle import dry_run
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_DIGITS = re.compile(r"([0-9]+)")


def draft_of(source: Source, snapshot: Snapshot) -> Draft:
    """Return a draft for views, which only read it."""
    return Draft(snapshot.seen, source.want, snapshot.memory, source.clock.now())


def heads_view(heads: Heads | None) -> Json | None:
    """Return which head leads, and which others could take over; None for a head alone."""
    if heads is None:
        return None
    others = [{**shape(other), "why_not": other.why_not} for other in heads.others]
    return {**shape(heads), "others": others}


def status_view(source: Source, snapshot: Snapshot, draft: Draft) -> Json:
    """Return the state of the cluster in brief."""
    seen, memory = snapshot.seen, snapshot.memory
    connected = {name for name, view in seen.agents.items() if view.connected}
    return {
        "standstill": shape(standstill) if (standstill := source.standstill()) is not None else None,
        "cluster": source.cluster,
        "version": source.version,
        "started": source.started,
        "heads": heads_view(source.heads()),
        "at": snapshot.at,
        "cycle": snapshot.number,
        "cycle_ms": round(snapshot.phases.total_s * 1e3, 1),
        "paused": memory.paused,
        "acts": source.want.repair.act,
        "asks": source.want.repair.ask,
        "resumes": source.want.resume.enabled,
        "slurm": seen.slurm.value,
        "provider": seen.provider.value,
        "nodes": dict(Counter(node_state(node) for node in seen.nodes.values())),
        "agents": {
            "connected": len(connected),
            "expected": len(expected_agents(draft) | (connected & seen.nodes.keys())),
            "met": len({*seen.agents, *memory.agents} & seen.nodes.keys()),
        },
        "open_cases": sum(case.is_open for case in memory.cases.values()),
        "cases_waiting": [
            {"case": case.number, "node": case.node, "asked": case.asked}
            for case in sorted(memory.cases.values(), key=lambda case: case.opened)
            if case.waits_for_yes
        ],
        "jobs_watched": sum(job.ended is None for job in memory.jobs.values()),
        "jobs_coming_back": sum(job.pending_from is not None for job in memory.jobs.values()),
        "asks_waiting": len(seen.asks),
        "kept": _kept_view(snapshot),
        "hot_spares": {each.hot_group: len(each.nodes) for each in seen.reservations.values() if each.hot_group},
        **_held_back(snapshot, draft),
        "groups": _groups_view(snapshot),
    }


def _kept_view(snapshot: Snapshot) -> list[Json]:
    """Return the nodes that are kept for jobs."""
    kept = {job.id: job.kept for job in snapshot.memory.jobs.values()}
    return [
        {"job": id, "shown_id": snapshot.shown_id(id), "nodes": len(each.nodes), "until": each.until}
        for id, each in kept.items()
        if each is not None and each.freed is None
    ]


def _held_back(snapshot: Snapshot, draft: Draft) -> Json:
    """Return the open incidents and the tripped breakers."""
    return {
        "incidents": [shape(one) for one in snapshot.memory.incidents.values() if one.over is None],
        "breakers": breakers_view(draft),
    }


def breakers_view(draft: Draft) -> list[Json]:
    """Return the tripped breakers, the oldest first.

    `next_try` (Unix seconds) is when one repair is let through; None if a person must reset the breaker. `nodes` are
    those whose repair the breaker withholds; `now` says that in words.
    """
    found = sorted(draft.breakers.values(), key=lambda each: (each.tripped, each.scope))
    held = withheld_repairs(draft)
    return [
        {
            **shape(each),
            "next_try": each.next_try,
            "nodes": list(held[each.scope]),
            "now": now_line(each, held[each.scope], draft.now),
        }
        for each in found
    ]


def _groups_view(snapshot: Snapshot) -> list[Json]:
    """Return the instance groups of the API's cluster, oldest first."""
    memory = snapshot.memory
    current = current_counts(memory, snapshot.seen)
    return [
        {
            "name": group.name,
            "role": group.role.value,
            "status": group.status.value,
            "current": current.get(group.name, 0),
            "target": group.goal.target,
            "minimum": group.goal.minimum,
            "partition": group.partition,
            "message": group.message,
        }
        for group in sorted(memory.groups.values(), key=lambda each: (each.created, each.name))
    ]


def nodes_view(source: Source, snapshot: Snapshot) -> list[Json]:
    """Return every node of Slurm with its verdict, its agent and its open case."""
    return views_of(
        sorted(snapshot.seen.nodes, key=natural_sort_key), node_verdicts(draft_of(source, snapshot)), source, snapshot
    )


def views_of(
    names: Iterable[NodeName], said: Mapping[NodeName, NodeVerdict], source: Source, snapshot: Snapshot
) -> list[Json]:
    """Return the views of these nodes, in this order."""
    details, nodes = source.details(), snapshot.seen.nodes
    cases = {case.node: case for case in snapshot.memory.cases.values() if case.is_open}
    agents = snapshot.seen.agents
    ours = source.want.slots.keys() | snapshot.memory.slots.keys()
    return [
        {
            **_node_view(nodes[name], agents.get(name), details.get(name), cases.get(name), name in ours),
            **_verdict_view(said[name]),
        }
        for name in names
    ]


def _node_view(
    node: Node, agent: AgentView | None, detail: AgentDetail | None, case: Case | None, repairable: bool
) -> Json:
    return {
        "name": node.name,
        "state": node_state(node),
        "slurm_state": "+".join([node.base.value, *sorted(node.flags)]),
        "reason": node.reason.text if node.reason else "",
        "reason_user": node.reason.user if node.reason else "",
        "ours": node.is_ours,
        "partitions": sorted(node.partitions),
        "repairable": repairable,
        "agent": _agent_view(agent, detail),
        "case": case.id if case else None,
        "step": case.step.value if case else None,
    }


def _verdict_view(said: NodeVerdict) -> Json:
    return {"verdict": said.word.value, "evidence": said.evidence, "since": said.since, "next": said.next}


def _agent_view(agent: AgentView | None, detail: AgentDetail | None) -> Json | None:
    if agent is None:
        return None
    bad = [shape(finding) for finding in agent.findings if finding.is_bad]
    return {
        "connected": agent.connected,
        "late": agent.late,
        "last_heard": agent.last_heard,
        "lost_at": agent.lost_at,
        "lost_why": agent.lost_why,
        "instance": agent.incarnation.instance if agent.incarnation else None,
        "boot": agent.incarnation.boot if agent.incarnation else None,
        "version": detail.version if detail else None,
        "skew_s": detail.skew_s if detail else None,
        "findings": len(agent.findings) + len(agent.passed) + len(agent.skipped),
        "bad": bad,
    }


def cases_view(snapshot: Snapshot) -> list[Json]:
    """Return all remembered repairs: open ones first, then the newest."""
    cases = sorted(snapshot.memory.cases.values(), key=lambda case: (not case.is_open, -case.opened))
    return [
        {**shape(case), "open": case.is_open, "token": case.token, "number": case.number, "waits": case.waits_for_yes}
        for case in cases
    ]


def approve(who: str, said: Mapping[str, str]) -> Approve:
    """Return the order of a body such as `{"cases": "c17,n[2-4]"}`.

    Raises Refusal if `cases` is not a list of names.
    """
    try:
        words = expand_nodes(said.get("cases", ""))
    except ValueError as error:
        raise Refusal(RefusalKind.VALIDATION, f"cases = {said.get('cases')}: {error}") from error
    return Approve(who=who, words=tuple(map(str, words)))


def jobs_view(snapshot: Snapshot) -> list[Json]:
    """Return all remembered jobs with `--auto-resume`."""
    return [
        {
            **shape(job),
            "shown_id": snapshot.shown_id(job.id),
            "user": user_name(job.uid),
            **_slurm_of(snapshot, job),
        }
        for job in in_order(snapshot.memory)
    ]


def in_order(memory: Memory) -> list[JobMemory]:
    """Return the remembered jobs: first those that are not over, then the newest."""
    return sorted(memory.jobs.values(), key=lambda job: (job.ended is not None, -job.id))


def _slurm_of(snapshot: Snapshot, job: JobMemory) -> Json:
    """Return Slurm's facts of a job; of a job that Slurm has forgotten, its name and last nodes from the ledger."""
    known = snapshot.seen.jobs.get(job.id)
    if known is None:
        runs = snapshot.memory.ledger.get(job.id, ())
        name, ran_on = (runs[-1].name, runs[-1].nodes) if runs else (None, job.nodes)
        state = "ENDED" if job.ended is not None else None
        return {
            "name": name,
            "state": state,
            "reason": job.end_text or None,
            "running_on": sorted(ran_on, key=natural_sort_key),
        }
    return {
        "name": known.name,
        "state": known.state.value,
        "reason": known.reason,
        "running_on": sorted(nodes_of(known, snapshot.memory), key=natural_sort_key),
    }


def nodes_of(job: Job, memory: Memory) -> frozenset[NodeName]:
    """Return the nodes that the job runs on; for an elastic run with those of its replica jobs."""
    run = memory.elastic.get(job.id)
    return job.nodes | run.members if run is not None and job.nodes else job.nodes


def plan_view(source: Source, snapshot: Snapshot, now: float) -> Json:
    """Return the plan that would be carried out at `now`, and whether actions are paused."""
    plan = dry_run(source.plan, snapshot, source.want, now)
    return {
        "at": now,
        "picture_at": snapshot.at,
        "slurm": snapshot.seen.slurm.value,
        "paused": snapshot.memory.paused,
        "actions": [_action_view(action, snapshot) for action in plan.actions],
        "events": [shape(event) for event in plan.events],
        "wake_at": plan.wake_at,
    }


def _action_view(action: Action, snapshot: Snapshot) -> Json:
    """Return an action as JSON, with its job's number as squeue shows it; that is empty for an action on no job."""
    shown = action_shape(action)
    job = shown.get("job")
    return {**shown, "shown_id": snapshot.shown_id(JobId(job)) if job is not None else ""}


def natural_sort_key(name: NodeName | str) -> tuple[Any, ...]:
    """Return a sort key that puts n2 before n10."""
    parts = _DIGITS.split(name)
    return ("".join(parts[::2]), [int(number) for number in parts[1::2]], name)
