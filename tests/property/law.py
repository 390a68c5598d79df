"""What must hold of every single plan, whatever the world does: one small check for each property."""

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from steward.model.action import (
    AllowRequeue,
    AnswerAsk,
    CheckNow,
    DelayTasks,
    DownNode,
    DrainNode,
    ExtendLimit,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    NudgeJob,
    ProbeNode,
    RequeueJob,
    ReturnNode,
    SetNice,
)
from steward.model.agent_action import Action, CollectStacks, LetGo, MendNode
from steward.model.ask import Answer
from steward.model.case import CaseStep, Trigger
from steward.model.desired import Desired
from steward.model.event_kinds import KINDS
from steward.model.health import Advice
from steward.model.ids import JobId
from steward.model.mark import SPARE, first_token
from steward.model.memory import Memory
from steward.model.mend import is_possible_mend
from steward.model.node import Node
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.model.reservation import Reservation
from steward.policy.books import REPLACING
from steward.policy.job.options import options
from steward.policy.plan import plan
from steward.workflows.journal import subject_of, subjects_of_events
from tests.fakes.world import World
from tests.property.hang_law import HangLaw
from tests.property.liveness import Liveness

COMMANDS = ("Action:Replace", "Action:Reboot")
OF_USERS = (
    "Kill task failed (JobId=7 StepId=0)",
    "Job step not running (JobId=7 StepId=0)",
    "SlurmdSpoolDir is full",
    "batch job complete failure",
    "Prolog error",
    "Epilog error",
)
"""Slurm takes a node out so for what a job's processes, files or environment did."""
SLURMS_OWN = (*OF_USERS, "gres/gpu count too low (7 < 8)")
HARMLESS = (CheckNow, ProbeNode)
ABOUT_JOBS = (CollectStacks, RequeueJob, NudgeJob, AllowRequeue, LetGo, AnswerAsk, SetNice, DelayTasks, ExtendLimit)
_REPR = re.compile(r"\b[A-Z]\w*\(\w+=")
"""The begin of a dataclass as Python prints it."""
NO_PROOF = ("doubt-", "scratch-")
"""Checks of the stories that only suspect, or tell of what all nodes share."""
LET_GO_MOST = 90
"""Orders to let go of one run: one a second for a minute and a half."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Law:
    """A watcher of plans: raises AssertionError at the first that breaks a property."""

    want: Desired
    opted: set[JobId] = field(default_factory=set)
    orders: Counter[tuple[JobId, int]] = field(default_factory=Counter)
    """Orders to let go, of each run of each job."""
    hang: HangLaw = field(init=False)
    live: Liveness | None = None
    world: World | None = None
    """Slurm as it really is: no action is about a record that is another one by now."""
    asks_again: bool = True
    """Whether each plan is made a second time, which is half of what a story costs."""

    def __post_init__(self) -> None:
        self.hang = HangLaw(self.want)

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        for action in decided.actions:
            self._every_action(action, seen)
        if self.world is not None:
            acts_on_what_is_there(decided, seen, self.world)
        self._budgets(decided)
        self._ladder(memory, decided)
        kept_within_bounds(decided, self.want)
        self.hang(seen, memory, decided)
        if self.live is not None:
            self.live(seen, memory, decided)
        self._quiet_and_deterministic(seen, memory, decided)

    def _ladder(self, memory: Memory, decided: Plan) -> None:
        order, rules = list(Advice), self.want.repair.budgets
        for id, case in decided.memory.cases.items():
            before = memory.cases.get(id, case)
            slot = self.want.slots.get(case.node)
            is_back = case.trigger is Trigger.LOST and slot is not None and slot.fixed
            is_only_checked = (case.gone or is_back) and case.rung is Advice.NONE
            went_up = order.index(case.rung) >= order.index(before.rung)
            assert went_up or is_only_checked, f"P4: case {id} went down the ladder"
        budgets = {
            Advice.RESTART_SERVICE: (rules.restarts_per_hour, 3600.0),
            Advice.RESET_GPU: (rules.resets_per_day, 86400.0),
            Advice.REBOOT: (rules.reboots_per_day, 86400.0),
        }
        by_admin = {id for id, case in decided.memory.cases.items() if case.trigger is Trigger.ADMIN}
        ours = [r for many in decided.memory.remedies.values() for r in many if r.case not in by_admin]
        for one in (r for r in ours if r.rung in budgets):
            most, window = budgets[one.rung]
            same = [
                r for r in ours if r.rung is one.rung and r.instance == one.instance and 0 <= one.at - r.at < window
            ]
            assert len(same) <= most, f"P4: {len(same)} times {one.rung.value} on {one.instance}"

    def _every_action(self, action: Action, seen: Observed) -> None:
        has_reason(action)
        if seen.slurm is not Freshness.FRESH:
            is_harmless_when_blind(action)
        if isinstance(action, MendNode):
            mends_only_what_is_out(action, seen)
        if isinstance(action, DrainNode | DownNode):
            assert not action.mark.check.startswith(NO_PROOF), f"P5: {action.key} without proof against the node"
        if isinstance(action, DrainNode | DownNode | ReturnNode):
            touches_only_ours(action, seen.nodes[action.node])
        if isinstance(action, ReturnNode) and action.mark == SPARE:
            assert any(i.node == action.node and i.token for i in seen.instances.values()), (
                f"P5: {action.node} not lent"
            )
        if isinstance(action, ABOUT_JOBS):
            assert action.job in self.opted, f"P5: {action} touches a job that did not opt in"
        if isinstance(action, KeepNodes | FreeNodes):
            keeps_only_ours(action, seen, self.opted)
        if isinstance(action, LetGo):
            ends_only_what_is_over(action, seen)
            self.orders[action.job, action.restart] += 1
            assert self.orders[action.job, action.restart] <= LET_GO_MOST, f"P4: {action} once more"

    def _budgets(self, decided: Plan) -> None:
        rules = self.want.repair
        cases = decided.memory.cases.values()
        sizes = Counter(slot.group for slot in self.want.slots.values())
        # what Slurm took out for one user's jobs takes turns apart
        repaired = [case for case in cases if case.step in REPLACING]
        running = Counter((self.want.slots[case.node].group, case.is_users_drain) for case in repaired)
        for (group, _), count in running.items():
            most = max(rules.concurrent_min, int(rules.concurrent_fraction * sizes[group]))
            assert count <= most, f"P4: {count} repairs at once in {group}"
        out = [
            c
            for c in cases
            if c.is_open and not c.is_stood_in and c.step is not CaseStep.SUSPECT and c.trigger.value != "admin"
        ]
        out = [case for case in out if case.opened > decided.memory.breakers_reset and not case.gone]
        out = [case for case in out if not case.command]  # Slurm itself took it out, not we
        limit = max(rules.breaker_min, int(rules.breaker_fraction * len(self.want.slots)))
        assert len(out) <= limit, f"P4: {len(out)} nodes out of service"
        begun = [at for times in decided.memory.history.values() for at in times]
        for at in begun:
            assert sum(1 for b in begun if at - 3600 < b <= at) <= rules.replacements_per_hour, "P4: too many an hour"
        for mem in decided.memory.jobs.values():
            by_us = [a for a in mem.attempts if a.decision.value != "stop" and not a.decided_for.startswith("restart:")]
            most = options(mem.mode, self.want.resume).max_resumes
            assert len(by_us) <= most, f"P10: job {mem.id} resumed {len(by_us)} times"

    def _quiet_and_deterministic(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        if not self.asks_again or (not decided.actions and decided.memory == memory):
            return  # a second plan is the same question, and P1 is asked wherever something is done
        again = plan(seen, self.want, decided.memory, seen.at)
        assert again.actions == (), f"P2: not quiet: {[a.key for a in again.actions]}"
        if not decided.actions:
            return
        again = plan(shuffled(seen), self.want, memory, seen.at)
        assert again == decided, "P1, P12: another answer to the same question, or the order of input matters"


def acts_on_what_is_there(decided: Plan, seen: Observed, world: World) -> None:
    if seen.slurm is not Freshness.FRESH:
        return
    nodes, jobs = world.slurm.shown_nodes(world.now), world.slurm.shown(world.now)
    assert {event.kind for event in decided.events} <= KINDS, "an event of a kind that is not in the list"
    about = [(str(action.key), subject_of([action], seen)) for action in decided.actions]
    about += [(event.text, subjects_of_events([event])) for event in decided.events]
    for what, subject in about:
        for name in subject.nodes:
            assert seen.nodes.get(name) == nodes.get(name), f"P6: {what} on an old record of {name}"
        for id in subject.jobs:
            assert seen.jobs.get(id) == jobs.get(id), f"P6: {what} on an old record of job {id}"


def has_reason(action: Action) -> None:
    assert not _REPR.search(str(action.why)), f"P11: {action.key} shows a repr: {action.why}"
    assert action.why.rule, f"P11: {action.key} has no rule"
    assert action.why.text, f"P11: {action.key} says nothing"
    if isinstance(action, DrainNode | DownNode | LaunchInstance | RequeueJob | LetGo):
        assert action.why.evidence, f"P11: {action.key} names no evidence"


def is_harmless_when_blind(action: Action) -> None:
    stops = isinstance(action, AnswerAsk) and action.answer is Answer.STOP
    assert stops or isinstance(action, HARMLESS), f"P6: {action.key} on an old picture"


def ends_only_what_is_over(action: LetGo, seen: Observed) -> None:
    job = seen.jobs[action.job]
    assert job.is_completing, f"P5: {action} hits a run that Slurm has not ended: {job}"
    assert job.restarts <= action.restart + 1, f"P5: {action} is of an older run than {job}"
    assert action.before < seen.at, f"P5: {action} reaches what begins now"
    for node in action.nodes:
        assert seen.agents[node].connected, f"P5: {action} to nobody"
        assert "COMPLETING" in seen.nodes[node].flags, f"P5: {action} to {node}, which has cleaned up"


def mends_only_what_is_out(action: MendNode, seen: Observed) -> None:
    node, view = seen.nodes[action.node], seen.agents[action.node]
    assert is_possible_mend(action.rung, action.target), f"P5: {action} makes no sense"
    assert node.is_drain or node.is_down, f"P5: {action.key} on a node in service: {node}"
    assert not node.is_busy, f"P5: {action.key} under a job: {node}"
    assert view.connected, f"P5: {action.key} to nobody"
    by_slurm = node.reason is not None and node.reason.user == "slurm"
    assert node.mark is not None or by_slurm, f"P5: {action.key} on a node that somebody else took out: {node}"


def touches_only_ours(action: DrainNode | DownNode | ReturnNode, node: Node) -> None:
    text = first_token(node.reason.text) if node.reason else ""
    if isinstance(action, ReturnNode):
        ours = node.mark is not None and node.mark.id == action.mark.id
        by_slurm = action.command in SLURMS_OWN and node.reason is not None and node.reason.user == "slurm"
        allowed = action.command in COMMANDS or by_slurm
        assert ours or (allowed and text == action.command), f"P5: gives back {node}"
    else:
        assert not node.is_foreign, f"P5: {action.key} on a node that somebody else took out: {node}"


def shuffled(seen: Observed) -> Observed:
    order = random.Random(7)

    def mix(mapping: Mapping[K, V]) -> dict[K, V]:
        items = list(mapping.items())
        order.shuffle(items)
        return dict(items)

    return replace(
        seen,
        nodes=mix(seen.nodes),
        jobs=mix(seen.jobs),
        agents=mix(seen.agents),
        instances=mix(seen.instances),
        asks=tuple(order.sample(seen.asks, len(seen.asks))),
        opted_in=tuple(order.sample(seen.opted_in, len(seen.opted_in))),
    )


def keeps_only_ours(action: KeepNodes | FreeNodes, seen: Observed, opted: set[JobId]) -> None:
    """Reservations are named as ours; nodes are kept for jobs that opted in, and never those of somebody else."""
    named = Reservation(name=action.name, nodes=frozenset())
    assert named.kept_for is not None or named.hot_group, f"P5: {action.name} is not ours"
    if isinstance(action, FreeNodes):
        return
    assert named.kept_for is None or named.kept_for in opted, f"P5: {action.name} is of no opted-in job"
    others = {n for r in seen.reservations.values() if not r.kept_for and not r.hot_group for n in r.nodes}
    assert not action.nodes & others, f"P5: {action.name} takes nodes of somebody's reservation"


def kept_within_bounds(decided: Plan, want: Desired) -> None:
    """Nothing is kept longer than it may be, nor for a job that is over."""
    for mem in decided.memory.jobs.values():
        kept = mem.kept
        if kept is not None and kept.freed is None:
            assert kept.until - kept.since <= want.resume.keep_s, f"P4: kept too long for {mem.id}"
            assert mem.ended is None, f"P8: nodes are kept for {mem.id}, which is over"
