"""The request of a shim that waits for a decision, and the answers."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from steward.model.bounds import Count, First, Folded, Given, Job, Printable, Sparse, StepName, Uid, WaitStatus
from steward.model.elastic_spec import ElasticText
from steward.model.ids import AskId, BootId, NodeName
from steward.model.job_report import LogSign
from steward.model.resume_mode import Mode

MAX_SIGNS = 16
MAX_LEFT = 256


class AskKind(Enum):
    """The failed part of a job that a shim asks about."""

    BATCH = "batch"
    """The batch script ended with a non-zero status and is held at exit on its node."""
    STEP = "step"
    """An srun inside an allocation failed and its supervisor waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A shim's request: `status` is the raw wait status, `uid` comes from the kernel (SO_PEERCRED), not the message."""

    id: AskId
    kind: AskKind
    job: Job
    step: StepName
    node: Annotated[NodeName, Given()]
    uid: Uid
    mode: Mode
    attempt: Count
    restart: Count
    status: WaitStatus
    at: float
    signs: Annotated[tuple[LogSign, ...], First(MAX_SIGNS)] = ()
    """Known lines near the end of the job's output, in the order of the file."""
    is_reading: Annotated[bool, Sparse()] = False
    """Whether the output is still being read, as on a busy node; the same ask with the signs follows."""
    nodes: Annotated[Folded, Sparse()] = ""
    """The nodes of the step, as Slurm lists nodes; empty: not known."""
    age: Annotated[Count | None, Sparse()] = None
    """The seconds that the step had run; None: not known."""
    replay: bool = True
    """Whether the step can run again; False if its input is gone."""
    own: Annotated[bool, Sparse()] = False
    """Whether the step's own srun has the option, and not only its job."""
    script_gone: Annotated[bool, Sparse()] = False
    """Whether Slurm lost the batch script before it began."""
    script_unbegun: Annotated[bool, Sparse()] = False
    """Whether a failure on the node (its output, a TaskProlog, another plugin) came before the script could begin."""


class Answer(Enum):
    """The decision that a shim receives."""

    RETRY = "retry"
    REQUEUE = "requeue"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptedIn:
    """An agent's report that a job with the option runs on its node (from slurmstepd, as root).

    Set by the head, empty if not known: `told_by` are the nodes that reported the job, `began_in` the node and boot in
    which the script began, as that node reported, `ran_on` the nodes of its run according to Slurm's own record.
    """

    job: Job
    uid: Uid
    mode: Mode
    restart: Count
    at: float
    elastic: Annotated[ElasticText, Sparse()] = ""
    """The value of `--elastic=` of a run's base job, on its batch host; empty for any other job."""
    has_steps: Annotated[bool, Sparse()] = False
    """Whether a step with the option ran on the node; False: only the script, as far as is known."""
    has_detached: Annotated[bool, Sparse()] = False
    """Whether a step without a waiting srun (`srun --async`) ran there, whose failure no shim asks about."""
    left: Annotated[str, Printable(MAX_LEFT), Sparse()] = ""
    """The processes of an earlier run or attempt that were still there when this one began; empty: none known."""
    has_script: Annotated[bool, Sparse()] = False
    """Whether the job's script began on the node, in its present boot."""
    told_by: Annotated[frozenset[NodeName], Given()] = frozenset()
    began_in: Annotated[frozenset[tuple[NodeName, BootId]], Given()] = frozenset()
    ran_on: Annotated[frozenset[NodeName], Given()] = frozenset()
