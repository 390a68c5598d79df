"""The reason of an action or of a surprising non-action, with its evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """`rule` names the rule that fired (stable, greppable); `text` is one sentence for people; `evidence` its facts."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]" + (f" ({'; '.join(self.evidence)})" if self.evidence else "")
