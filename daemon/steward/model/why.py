"""The reason of an action or of a surprising non-action, with its evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A reason: the name of the rule that fired (stable, greppable), one sentence for people, and its evidence."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def heard(cls, text: str) -> "Why":
        """Return the reason that came with an order of the head, of which only the text is sent."""
        return cls(rule="head", text=text)

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]" + (f" ({'; '.join(self.evidence)})" if self.evidence else "")
