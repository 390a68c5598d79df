"""How the recorded error of a Slurm command begins: the word for its kind, by which the policy knows what may pass."""

STALE, REFUSED, RETRY, ERROR, NOT_TRIED = "stale", "refused", "retry", "error", "not tried"


def recorded(word: str, error: str) -> str:
    """The error with its word; empty for none."""
    return f"{word}: {error}" if error else ""


def is_refusal(error: str) -> bool:
    """Whether Slurm said no, and would say so again. All else may pass: no answer, a command that was not tried, what
    nobody foresaw."""
    return error.startswith((f"{STALE}: ", f"{REFUSED}: "))


def was_not_tried(error: str) -> bool:
    """Whether the action was left out, because the command before it hung, or surely reached nobody."""
    return error.startswith(f"{NOT_TRIED}: ")
