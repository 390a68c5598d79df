"""How a call of a port fails: kinds that say what may be done next (`ports` has them under the same names), and the
words under which they are recorded."""


class PortError(Exception):
    """One clear line: what was tried, what came back, what to do."""


class Retryable(PortError):
    """Nothing is known to have happened; the same call may work later."""


class Unsent(Retryable):
    """Surely nothing was done: nobody could be reached. So it may be asked for again also where twice would be one too
    many, as with a signal."""


class Permanent(PortError):
    """The call will not work as asked (refused, invalid)."""


class Stale(PortError):
    """The thing changed since it was read (our mark is gone, the job ended): read again first."""


# How the recorded error of a Slurm command begins: the word for its kind, by which the policy knows what may pass.

STALE, REFUSED, RETRY, ERROR, NOT_TRIED = "stale", "refused", "retry", "error", "not tried"


def recorded(word: str, error: str) -> str:
    """The error with its word; empty for none."""
    return f"{word}: {error}" if error else ""


def said(error: str) -> str:
    """The recorded error without its word."""
    return error.partition(": ")[2]


def is_refusal(error: str) -> bool:
    """Whether Slurm said no, and would say so again. All else may pass: no answer, a command that was not tried, what
    nobody foresaw."""
    return was_refused(error) or error.startswith(f"{STALE}: ")


def was_refused(error: str) -> bool:
    """Whether what was asked for was refused; the thing it is about is as it was."""
    return error.startswith(f"{REFUSED}: ")


def was_not_tried(error: str) -> bool:
    """Whether the action was left out, because the command before it hung, or surely reached nobody."""
    return error.startswith(f"{NOT_TRIED}: ")
