"""Our part of a job's admin comment. What others wrote there is theirs: it stays, in front of ours."""

PREFIX = "steward: "
BETWEEN = " | "
LONGEST = 200


def ours(admin_comment: str) -> str:
    """The part that we wrote; empty: none."""
    return next((part for part in admin_comment.split(BETWEEN) if part.startswith(PREFIX)), "")


def with_ours(admin_comment: str, text: str) -> str:
    """The whole comment once `text` is our part of it."""
    others = [part for part in admin_comment.split(BETWEEN) if part and not part.startswith(PREFIX)]
    return BETWEEN.join([*others, text])
