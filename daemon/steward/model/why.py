"""The reason for an action, or for its absence, with the evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A reason: the stable name of the rule that fired, one sentence for people, and the evidence."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def heard(cls, text: str) -> "Why":
        """Return the reason that came with an order of the head, of which only the text is sent."""
        return cls(rule="head", text=text)

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]" + (f" ({'; '.join(self.evidence)})" if self.evidence else "")
