"""The actions that agents carry out, with the base of all actions. An agent loads no others.

Each is sent to the agent as it is; its fields have the bounds of a frame.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from steward.model.bounds import (
    Called,
    Count,
    Flat,
    Form,
    Free,
    Given,
    Job,
    MaxLen,
    Parsed,
    Printable,
    Range,
    Sparse,
    Token,
    Uid,
)
from steward.model.elastic import Nodes, ReplicaToken
from steward.model.elastic_spec import MAX_NODES
from steward.model.health import Advice
from steward.model.ids import Key, NodeName
from steward.model.resume_mode import STACK_SIGNALS
from steward.model.setup import Lifecycle
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change of the world that is made once: a second action with the same `key` is a duplicate."""

    key: Annotated[Key, Given()]
    why: Annotated[Why, Given()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAction(Action):
    """An action that the agent of `node` carries out; stale while that agent is not connected."""

    node: Annotated[NodeName, Given()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsAction(Action):
    """An action that the connected agents of `nodes` carry out."""

    nodes: Annotated[frozenset[NodeName], Given()]


_Grace = Annotated[int, Range(high=86_400)]


_STACK_SIGNAL = Form(re.compile(f"({'|'.join(sorted(STACK_SIGNALS))})?"), "is not a signal for stacks")


@dataclass(frozen=True, slots=True, kw_only=True)
class MendNode(AgentAction):
    """Have the node's agent carry out a light rung of the ladder, once per `token` and boot.

    RESTART_SERVICE restarts the unit `target`; RESET_GPU resets the GPU with that UUID or PCI address. The agent
    refuses a unit that its own settings do not allow, and a GPU that a process holds.
    """

    rung: Advice
    target: str
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpNode(AgentAction):
    """Have the node's agent run the group's lifecycle scripts, once per `token` and boot.

    `resource_config` is the JSON text for /opt/ml/config/resource_config.json, `provisioning` the text for
    provisioning_parameters.json (empty: the source's own file).
    """

    token: Token
    lifecycle: Annotated[Lifecycle, Flat()]
    timeout_s: float
    resource_config: Annotated[str, Free()]
    provisioning: Annotated[str, Free()] = ""
    features: Annotated[frozenset[Annotated[str, Called("feature")]], MaxLen(64)] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStacks(AgentsAction):
    """Have the agents of `nodes` record, under `name`, what a job's tasks are doing.

    The record holds the state of each process, and the stacks that it writes itself if the job named a signal for that.
    `uid` is the job's user: what others say of the job counts nothing.
    """

    job: Job
    uid: Uid
    name: Token
    signal: Annotated[str, MaxLen(8), _STACK_SIGNAL] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo(AgentsAction):
    """Have the agents of `nodes` end the slurmstepds of a job's lost run that have no task left.

    `restart` is the lost run's restart count. `before` (Unix s) is when the lost run was over: a slurmstepd that began
    later belongs to a new run. `uid` is the job's user: what others say of the job counts nothing.
    """

    job: Job
    uid: Uid
    restart: Count
    before: float
    why: Annotated[Why, Printable(400), Parsed(Why.heard)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRun(AgentAction):
    """Have a run's coordinator, through the agent of `node`, go to `generation` with exactly these members.

    All ranks save first, for `grace_s` seconds at most; 0: the ranks stop at once. `patient`: no rank is stopped before
    it has saved.
    """

    run: Job
    generation: Annotated[int, Range(1, 2**31)]
    members: Nodes
    grace_s: _Grace
    patient: Annotated[bool, Sparse()] = False
    why: Annotated[Why, Printable(200), Parsed(Why.heard)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReplica(AgentAction):
    """Have the agent of `node` submit a replica job of the run as the run's user, once per token.

    `minutes` 0 and an empty `qos`: as in the script of the run's base job.
    """

    run: Job
    token: ReplicaToken
    nodes: Annotated[int, Range(1, MAX_NODES)]
    grace_s: _Grace
    minutes: Annotated[int, Range(high=10**6)] = 0
    qos: Annotated[str, MaxLen(64)] = ""
    exclude: Nodes = frozenset()
    why: Annotated[Why, Printable(200), Parsed(Why.heard)]
