"""Steward's part of a job's admin comment. All other text stays in front of it."""

PREFIX = "steward: "
BETWEEN = " | "
LONGEST = 200


def own_part(admin_comment: str) -> str:
    """Return Steward's part of the comment; empty if there is none."""
    return next((part for part in admin_comment.split(BETWEEN) if part.startswith(PREFIX)), "")


def with_own_part(admin_comment: str, text: str) -> str:
    """Return the whole comment with `text` as Steward's part."""
    others = [part for part in admin_comment.split(BETWEEN) if part and not part.startswith(PREFIX)]
    return BETWEEN.join([*others, text])
