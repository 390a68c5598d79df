"""Ask Slurm the questions of plans, and keep the answers for a while."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from steward.model.fit import UNKNOWN, Fit, Question
from steward.model.node_names import fold
from steward.ports import Clock, SlurmPort

log = logging.getLogger(__name__)

_KEPT_S = 60.0
_FOR_S = 0.5
"""A turn asks for at most this time; its remaining questions are answered UNKNOWN."""


class Answers:
    """Slurm's answers to plans' questions. Used by one thread."""

    def __init__(self, slurm: SlurmPort, clock: Clock) -> None:
        self._slurm, self._clock = slurm, clock
        self._found: Mapping[Question, Fit] = MappingProxyType({})

    def known(self) -> Mapping[Question, Fit]:
        """Return the answer to each question; the same object until an answer comes or grows too old."""
        now = self._clock.now()
        if any(fit.at < now - _KEPT_S for fit in self._found.values()):
            young = {question: fit for question, fit in self._found.items() if fit.at >= now - _KEPT_S}
            self._found = MappingProxyType(young)
        return self._found

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask Slurm the questions, as long as `_FOR_S` lasts, and keep the answers."""
        began, found = self._clock.now(), dict(self._found)
        for question in questions:
            at = self._clock.now()
            fit = self._slurm.fits(question) if at < began + _FOR_S else UNKNOWN
            found[question] = replace(fit, at=at)
            log.debug(
                "Slurm says of job %s: %s",
                question.job,
                fit.state.value,
                extra={
                    "without": fold(question.without),
                    "through": question.reservation,
                    "missing": fit.missing,
                    "nodes": fold(fit.nodes),
                },
            )
        self._found = MappingProxyType(found)
