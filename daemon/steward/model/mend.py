"""The light rungs of the ladder, carried out by the node's own agent: a service restarted, a GPU reset."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MendReport:
    """How the order with `token` ended on this boot. `error` is one line of hostile, bounded text; empty: it worked."""

    token: str
    error: str = ""
    at: float = 0.0

    @property
    def is_done(self) -> bool:
        return not self.error
