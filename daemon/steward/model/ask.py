"""A shim that waits for a decision, and what it may be told."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from steward.model.bounds import Count, First, Folded, Given, Job, Newer, Sparse, Step, Uid, WaitStatus
from steward.model.elastic_spec import ElasticText
from steward.model.ids import AskId, NodeName
from steward.model.job_report import LogSign
from steward.model.resume_mode import Mode

MAX_SIGNS = 16


class AskKind(Enum):
    BATCH = "batch"
    """The batch script ended with a non-zero status and is held at exit on its node."""
    STEP = "step"
    """An srun inside an allocation failed and its supervisor waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """`status` is the raw wait status of what failed; `uid` is the kernel's word (SO_PEERCRED), not the message's."""

    id: AskId
    kind: AskKind
    job: Job
    step: Step
    node: Annotated[NodeName, Given()]
    uid: Uid
    mode: Mode
    attempt: Count
    restart: Count
    status: WaitStatus
    at: float
    signs: Annotated[tuple[LogSign, ...], First(MAX_SIGNS)] = ()
    """Known lines near the end of the job's output, in the order of the file."""
    nodes: Annotated[Folded, Sparse()] = ""
    """Where the step ran, as Slurm lists nodes; empty: not known."""
    age: Annotated[Count | None, Sparse()] = None
    """How many seconds the step had run; None: not known."""
    replay: bool = True
    """False: the step's input is gone, it cannot run again."""
    own: Annotated[bool, Sparse()] = False
    """The step's own srun has the option, and not only its job."""
    script_gone: Annotated[bool, Newer()] = False
    """Slurm lost the batch script before it could begin."""
    script_unbegun: Annotated[bool, Sparse()] = False
    """Something failed on the node before the batch script could begin: a TaskProlog, another plugin."""


class Answer(Enum):
    RETRY = "retry"
    REQUEUE = "requeue"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptedIn:
    """An agent's word that a job with the option runs on its node (told by slurmstepd as root).

    `told_by`: nodes that said so, at the head; empty: not known. `ran_on`: the nodes of that run where Slurm's own
    record of the job is the source; empty: not known.
    """

    job: Job
    uid: Uid
    mode: Mode
    restart: Count
    at: float
    elastic: Annotated[ElasticText, Sparse()] = ""
    """The value of `--elastic=` of a run's base, on its batch host; empty for any other job."""
    has_steps: Annotated[bool, Sparse()] = False
    """A step with the option ran there; False: only the script did, as far as is known."""
    told_by: Annotated[frozenset[NodeName], Given()] = frozenset()
    ran_on: Annotated[frozenset[NodeName], Given()] = frozenset()
