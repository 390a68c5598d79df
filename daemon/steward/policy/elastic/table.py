"""The table of an elastic run: (phase, fact) -> phase, and the deadline of each phase."""

from enum import Enum

from steward.model.elastic import ElasticRun, Phase
from steward.policy.elastic.rules import RunRules, patience_s
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


_ROWS: dict[tuple[Phase, RunFact], Phase] = {
    (Phase.WAITING, RunFact.OVER): Phase.ENDED,
    (Phase.WAITING, RunFact.STEPPED): Phase.RUNNING,
    (Phase.RUNNING, RunFact.OVER): Phase.ENDED,
    (Phase.RUNNING, RunFact.QUEUED): Phase.WAITING,
    (Phase.RUNNING, RunFact.LOST): Phase.FAULTED,
    (Phase.RUNNING, RunFact.GIVES): Phase.DRAINING,
    (Phase.RUNNING, RunFact.FORMED): Phase.REFORMING,
    (Phase.RUNNING, RunFact.READY): Phase.SETTLING,
    (Phase.SETTLING, RunFact.OVER): Phase.ENDED,
    (Phase.SETTLING, RunFact.QUEUED): Phase.WAITING,
    (Phase.SETTLING, RunFact.LOST): Phase.FAULTED,
    (Phase.SETTLING, RunFact.GIVES): Phase.DRAINING,
    (Phase.SETTLING, RunFact.FORMED): Phase.REFORMING,
    (Phase.SETTLING, RunFact.SETTLED): Phase.DRAINING,
    (Phase.SETTLING, RunFact.ALONE): Phase.RUNNING,
    (Phase.DRAINING, RunFact.OVER): Phase.ENDED,
    (Phase.DRAINING, RunFact.QUEUED): Phase.WAITING,
    (Phase.DRAINING, RunFact.LOST): Phase.FAULTED,
    (Phase.DRAINING, RunFact.GIVES): Phase.DRAINING,
    (Phase.DRAINING, RunFact.STEPPED): Phase.BACKOFF,
    (Phase.DRAINING, RunFact.FORMED): Phase.REFORMING,
    (Phase.DRAINING, RunFact.LATE): Phase.RUNNING,
    (Phase.REFORMING, RunFact.OVER): Phase.ENDED,
    (Phase.REFORMING, RunFact.QUEUED): Phase.WAITING,
    (Phase.REFORMING, RunFact.LOST): Phase.FAULTED,
    (Phase.REFORMING, RunFact.GIVES): Phase.DRAINING,
    (Phase.REFORMING, RunFact.STEPPED): Phase.BACKOFF,
    (Phase.REFORMING, RunFact.LATE): Phase.BACKOFF,
    (Phase.FAULTED, RunFact.OVER): Phase.ENDED,
    (Phase.FAULTED, RunFact.QUEUED): Phase.WAITING,
    (Phase.FAULTED, RunFact.WENT_ON): Phase.RUNNING,
    (Phase.FAULTED, RunFact.HEALED): Phase.REFORMING,
    (Phase.FAULTED, RunFact.LATE): Phase.DRAINING,
    (Phase.BACKOFF, RunFact.OVER): Phase.ENDED,
    (Phase.BACKOFF, RunFact.QUEUED): Phase.WAITING,
    (Phase.BACKOFF, RunFact.LOST): Phase.FAULTED,
    (Phase.BACKOFF, RunFact.GIVES): Phase.DRAINING,
    (Phase.BACKOFF, RunFact.FORMED): Phase.REFORMING,
    (Phase.BACKOFF, RunFact.COOL): Phase.RUNNING,
}
TABLE = Table(_ROWS)
ANSWER_S = 15.0
"""The time beyond the grace within which a coordinator carries out an order."""


def deadline(run: ElasticRun, rules: RunRules, *, saves: bool = False) -> float | None:
    """Return the deadline of the run's phase (Unix s); None for a phase that only an event ends.

    `saves`: its ranks have begun to save for a change that waits for them.
    """
    match run.phase:
        case Phase.WAITING | Phase.RUNNING | Phase.ENDED:
            return None
        case Phase.SETTLING:
            return run.entered + rules.settle_s
        case Phase.DRAINING:
            if not run.is_patient:
                return run.entered + rules.grace_s + ANSWER_S
            return run.entered + patience_s(run, rules) + ANSWER_S + (rules.form_s if saves else 0.0)
        case Phase.REFORMING:
            return run.entered + rules.form_s
        case Phase.FAULTED:
            return run.entered + rules.faulty_s
        case Phase.BACKOFF:
            return max(run.cool_until, run.entered)
