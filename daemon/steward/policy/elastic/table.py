"""The table of an elastic run: (phase, fact) -> phase, and the deadline of each phase."""

from enum import Enum

from steward.model.elastic import ElasticRun, RunPhase
from steward.policy.facts.run_rules import RunRules, patience_s
from steward.policy.state_machine import Table


class RunFact(Enum):
    """A fact about a run in the current picture, in the order in which facts are tried; the value is a sentence."""

    OVER = "its training is done, or its base job has ended"
    QUEUED = "its base job was requeued"
    LOST = "a member is lost"
    GIVES = "nodes must be given back"
    STEPPED = "the first step of the new generation was made"
    FORMED = "the new generation starts"
    WENT_ON = "all members are back, and the run continued unchanged"
    HEALED = "all members are back"
    LATE = "the phase's deadline passed"
    READY = "more nodes are ready than the run has"
    SETTLED = "the nodes have settled and growing pays"
    ALONE = "the nodes that were ready are gone"
    COOL = "the back-off is over"


_ROWS: dict[tuple[RunPhase, RunFact], RunPhase] = {
    (RunPhase.WAITING, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.WAITING, RunFact.STEPPED): RunPhase.RUNNING,
    (RunPhase.RUNNING, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.RUNNING, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.RUNNING, RunFact.LOST): RunPhase.FAULTED,
    (RunPhase.RUNNING, RunFact.GIVES): RunPhase.DRAINING,
    (RunPhase.RUNNING, RunFact.FORMED): RunPhase.REFORMING,
    (RunPhase.RUNNING, RunFact.READY): RunPhase.SETTLING,
    (RunPhase.SETTLING, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.SETTLING, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.SETTLING, RunFact.LOST): RunPhase.FAULTED,
    (RunPhase.SETTLING, RunFact.GIVES): RunPhase.DRAINING,
    (RunPhase.SETTLING, RunFact.FORMED): RunPhase.REFORMING,
    (RunPhase.SETTLING, RunFact.SETTLED): RunPhase.DRAINING,
    (RunPhase.SETTLING, RunFact.ALONE): RunPhase.RUNNING,
    (RunPhase.DRAINING, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.DRAINING, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.DRAINING, RunFact.LOST): RunPhase.FAULTED,
    (RunPhase.DRAINING, RunFact.GIVES): RunPhase.DRAINING,
    (RunPhase.DRAINING, RunFact.STEPPED): RunPhase.BACKOFF,
    (RunPhase.DRAINING, RunFact.FORMED): RunPhase.REFORMING,
    (RunPhase.DRAINING, RunFact.LATE): RunPhase.RUNNING,
    (RunPhase.REFORMING, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.REFORMING, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.REFORMING, RunFact.LOST): RunPhase.FAULTED,
    (RunPhase.REFORMING, RunFact.GIVES): RunPhase.DRAINING,
    (RunPhase.REFORMING, RunFact.STEPPED): RunPhase.BACKOFF,
    (RunPhase.REFORMING, RunFact.LATE): RunPhase.BACKOFF,
    (RunPhase.FAULTED, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.FAULTED, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.FAULTED, RunFact.WENT_ON): RunPhase.RUNNING,
    (RunPhase.FAULTED, RunFact.HEALED): RunPhase.REFORMING,
    (RunPhase.FAULTED, RunFact.LATE): RunPhase.DRAINING,
    (RunPhase.BACKOFF, RunFact.OVER): RunPhase.ENDED,
    (RunPhase.BACKOFF, RunFact.QUEUED): RunPhase.WAITING,
    (RunPhase.BACKOFF, RunFact.LOST): RunPhase.FAULTED,
    (RunPhase.BACKOFF, RunFact.GIVES): RunPhase.DRAINING,
    (RunPhase.BACKOFF, RunFact.FORMED): RunPhase.REFORMING,
    (RunPhase.BACKOFF, RunFact.COOL): RunPhase.RUNNING,
}
RUN_TABLE = Table(_ROWS)
ANSWER_S = 15.0
"""How long beyond the grace a coordinator may take to carry out an order."""


def deadline(run: ElasticRun, rules: RunRules, *, saves: bool = False) -> float | None:
    """Return the deadline of the run's phase (Unix s); None for a phase that only an event ends.

    `saves`: the ranks have begun to save for a change of size that waits for them.
    """
    match run.phase:
        case RunPhase.WAITING | RunPhase.RUNNING | RunPhase.ENDED:
            return None
        case RunPhase.SETTLING:
            return run.entered + rules.settle_s
        case RunPhase.DRAINING:
            if not run.is_patient:
                return run.entered + rules.grace_s + ANSWER_S
            return run.entered + patience_s(run, rules) + ANSWER_S + (rules.form_s if saves else 0.0)
        case RunPhase.REFORMING:
            return run.entered + rules.form_s
        case RunPhase.FAULTED:
            return run.entered + rules.faulty_s
        case RunPhase.BACKOFF:
            return max(run.cool_until, run.entered)
