"""The reason of an action or of a surprising non-action, with its evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A reason: the name of the rule that fired (stable, greppable), one sentence for people, and its evidence."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]" + (f" ({'; '.join(self.evidence)})" if self.evidence else "")
