"""The plan: from the picture, the settings and the memory to actions, the next memory and events. Pure."""

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.policy.blind_time import forgive_blind_time, note_look
from steward.policy.case.cases import move_cases
from steward.policy.case.incidents import find_incidents
from steward.policy.case.lookout import probe_silent
from steward.policy.case.presence import note_absences, note_leaves, note_stops, remember_agents, remember_served
from steward.policy.case.silence import follow_silence
from steward.policy.case.spares import keep_spares
from steward.policy.case.suspicion import open_cases
from steward.policy.case.warnings import note_foreign, note_leaks, tell_hurt, tell_reasons
from steward.policy.deep.carry import carry_deeps, follow_deeps
from steward.policy.draft import Draft
from steward.policy.elastic.follow import follow_runs
from steward.policy.fact_cache import FactCache
from steward.policy.features import keep_features
from steward.policy.groups.gate import keep_gates
from steward.policy.groups.goals import finish_operations, keep_groups
from steward.policy.groups.hot_spares import maintain_hot_spares
from steward.policy.groups.orphans import end_late_instances, end_orphan_instances
from steward.policy.groups.rollout import move_rollouts
from steward.policy.groups.slots import move_slots
from steward.policy.guards.breaker import follow_breakers
from steward.policy.guards.bring_up import follow_bring_ups
from steward.policy.guards.canary import follow_trials
from steward.policy.guards.lemons import note_exclusions
from steward.policy.job.ask import answer_asks
from steward.policy.job.comment import comment_jobs
from steward.policy.job.first import restore_turns
from steward.policy.job.give_back import give_back_time
from steward.policy.job.hang import follow_hangs
from steward.policy.job.keep import free_decided, free_kept, keep_nodes
from steward.policy.job.leaving import let_go
from steward.policy.job.ledger import keep_ledger
from steward.policy.job.remember import note_suspensions, remember_jobs
from steward.policy.job.resume import follow_jobs
from steward.policy.job.siblings import keep_slots
from steward.policy.prune import prune
from steward.policy.quota.keep import keep_quotas
from steward.policy.quota.unseen import note_unseen

STAGES = (
    remember_agents,
    note_leaves,
    note_absences,
    remember_served,
    remember_jobs,
    forgive_blind_time,
    follow_trials,
    follow_silence,
    find_incidents,
    move_cases,
    follow_breakers,
    follow_bring_ups,
    follow_deeps,
    open_cases,
    move_cases,
    move_slots,
    keep_groups,
    move_rollouts,
    move_slots,
    keep_groups,
    move_cases,
    carry_deeps,
    finish_operations,
    end_orphan_instances,
    end_late_instances,
    keep_gates,
    keep_features,
    keep_spares,
    note_look,
    note_foreign,
    note_leaks,
    tell_reasons,
    tell_hurt,
    note_exclusions,
    note_suspensions,
    note_stops,
    probe_silent,
    restore_turns,
    free_kept,
    maintain_hot_spares,
    note_unseen,
    follow_jobs,
    follow_hangs,
    let_go,
    answer_asks,
    free_decided,
    keep_nodes,
    keep_slots,
    give_back_time,
    keep_quotas,
    follow_runs,
    keep_ledger,
    comment_jobs,
    prune,
)
"""The stages of a plan on a fresh picture of Slurm, in order. Nodes come before jobs, so that a bad node is out before
its job is brought back. Cases move again after the slots: a slot that leaves has closed its case, and another case may
have its turn."""


def plan(seen: Observed, want: Desired, memory: Memory, now: float, ground: FactCache | None = None) -> Plan:
    """Return the plan. A second plan for the same picture, with the memory of the first one, has no action.

    On a stale picture of Slurm only shims are answered: those past their deadline stop waiting. `ground` is the cache
    of the plans before: it makes this plan faster, and changes nothing in it.
    """
    draft = Draft(seen, want, memory, now, ground if ground is not None else FactCache())
    for stage in STAGES if draft.slurm_is_fresh else (answer_asks,):
        stage(draft)
    return draft.plan()


class Plans:
    """A maker of plans that keeps its cache of facts from plan to plan, for one thread."""

    def __init__(self) -> None:
        self._ground = FactCache()

    def __call__(self, seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        return plan(seen, want, memory, now, self._ground)
