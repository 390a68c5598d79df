"""Notes of what stands. Other notes are forgotten after a day (`prune.py`)."""

from steward.policy.draft import Draft

_REFRESH_S = 43_200.0


def stand(key: str, draft: Draft) -> None:
    """Note what is so now; it is not forgotten while it is said again and again. Its time says nothing."""
    at = draft.noted.get(key)
    if at is None or draft.now - at > _REFRESH_S:
        draft.noted[key] = draft.now
