"""The table of an elastic run: (phase, fact) -> phase, and the deadline of each phase."""

from enum import Enum

from steward.model.elastic import ElasticRun, Phase
from steward.policy.elastic.rules import RunRules, patience_s
from steward.policy.state_machine import Table


class Fact(Enum):
    """A fact that the picture shows of a run, in the order in which facts are tried. The value is a sentence for
    people."""

    OVER = "its training is done, or its base job is over"
    QUEUED = "its base job waits in the queue again"
    LOST = "a member is lost"
    GIVES = "nodes have to be given back"
    STEPPED = "the first step of the new generation was made"
    FORMED = "the new generation starts"
    WENT_ON = "all members are there again, and it went on as it was"
    HEALED = "all members are there again"
    LATE = "the phase's deadline passed"
    READY = "more nodes are ready than it has"
    SETTLED = "the nodes have settled and growing pays"
    ALONE = "the nodes that were ready are not any more"
    COOL = "it has been quiet for long enough"


_ROWS: dict[tuple[Phase, Fact], Phase] = {
    (Phase.WAITING, Fact.OVER): Phase.ENDED,
    (Phase.WAITING, Fact.STEPPED): Phase.RUNNING,
    (Phase.RUNNING, Fact.OVER): Phase.ENDED,
    (Phase.RUNNING, Fact.QUEUED): Phase.WAITING,
    (Phase.RUNNING, Fact.LOST): Phase.FAULTED,
    (Phase.RUNNING, Fact.GIVES): Phase.DRAINING,
    (Phase.RUNNING, Fact.FORMED): Phase.REFORMING,
    (Phase.RUNNING, Fact.READY): Phase.SETTLING,
    (Phase.SETTLING, Fact.OVER): Phase.ENDED,
    (Phase.SETTLING, Fact.QUEUED): Phase.WAITING,
    (Phase.SETTLING, Fact.LOST): Phase.FAULTED,
    (Phase.SETTLING, Fact.GIVES): Phase.DRAINING,
    (Phase.SETTLING, Fact.FORMED): Phase.REFORMING,
    (Phase.SETTLING, Fact.SETTLED): Phase.DRAINING,
    (Phase.SETTLING, Fact.ALONE): Phase.RUNNING,
    (Phase.DRAINING, Fact.OVER): Phase.ENDED,
    (Phase.DRAINING, Fact.QUEUED): Phase.WAITING,
    (Phase.DRAINING, Fact.LOST): Phase.FAULTED,
    (Phase.DRAINING, Fact.GIVES): Phase.DRAINING,
    (Phase.DRAINING, Fact.STEPPED): Phase.BACKOFF,
    (Phase.DRAINING, Fact.FORMED): Phase.REFORMING,
    (Phase.DRAINING, Fact.LATE): Phase.RUNNING,
    (Phase.REFORMING, Fact.OVER): Phase.ENDED,
    (Phase.REFORMING, Fact.QUEUED): Phase.WAITING,
    (Phase.REFORMING, Fact.LOST): Phase.FAULTED,
    (Phase.REFORMING, Fact.GIVES): Phase.DRAINING,
    (Phase.REFORMING, Fact.STEPPED): Phase.BACKOFF,
    (Phase.REFORMING, Fact.LATE): Phase.BACKOFF,
    (Phase.FAULTED, Fact.OVER): Phase.ENDED,
    (Phase.FAULTED, Fact.QUEUED): Phase.WAITING,
    (Phase.FAULTED, Fact.WENT_ON): Phase.RUNNING,
    (Phase.FAULTED, Fact.HEALED): Phase.REFORMING,
    (Phase.FAULTED, Fact.LATE): Phase.DRAINING,
    (Phase.BACKOFF, Fact.OVER): Phase.ENDED,
    (Phase.BACKOFF, Fact.QUEUED): Phase.WAITING,
    (Phase.BACKOFF, Fact.LOST): Phase.FAULTED,
    (Phase.BACKOFF, Fact.GIVES): Phase.DRAINING,
    (Phase.BACKOFF, Fact.FORMED): Phase.REFORMING,
    (Phase.BACKOFF, Fact.COOL): Phase.RUNNING,
}
TABLE = Table(_ROWS)
ANSWER_S = 15.0
"""Beyond the grace a coordinator takes no longer."""


def deadline(run: ElasticRun, rules: RunRules, *, saves: bool = False) -> float | None:
    """Unix s. None: it ends with an event alone; a run that waits or runs is looked at by each sweep. `saves`: its
    ranks have begun to save for a change that waits for them."""
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
