"""The errors of a port's calls, by what may be done next, and the words under which they are recorded.

`ports` exports the errors under the same names.
"""


class PortError(Exception):
    """A failed call, as one clear line: what was tried, what came back, what to do."""


class Retryable(PortError):
    """A failure without a known effect; the same call may work later."""


class Unsent(Retryable):
    """A failure without any effect, because the other side was not reached: even a signal may be sent again."""


class Permanent(PortError):
    """A call that cannot work as asked (refused, invalid)."""


class WrongClock(Permanent):
    """A sound MUNGE credential from a machine whose clock differs by minutes.

    `uid` is the maker's, `payload` the content, `behind_s` by how much the maker's clock is behind ours.
    """

    def __init__(self, text: str, *, uid: int, payload: bytes, behind_s: float) -> None:
        super().__init__(text)
        self.uid, self.payload, self.behind_s = uid, payload, behind_s


class Stale(PortError):
    """A call about a thing that changed since it was read (our mark is gone, the job ended): read again first."""


class Deposed(PortError):
    """A write of a head that does not lead any more: another head has taken the lead, with a later epoch."""


# The first word of a recorded error of a Slurm command is the error's kind, by which the policy decides what to do.

STALE, REFUSED, RETRY, ERROR, NOT_TRIED = "stale", "refused", "retry", "error", "not tried"

CAPACITY, NOT_YET = "capacity", "not yet"
"""The first words of a provider's error that is no refusal of the request: there is no machine of this kind now, and
what was there before has not quite gone."""


def recorded(word: str, error: str) -> str:
    """Return the error with its word in front; empty for no error."""
    return f"{word}: {error}" if error else ""


def text_of_error(error: str) -> str:
    """Return a recorded error without its word."""
    return error.partition(": ")[2]


def is_refusal(error: str) -> bool:
    """Return whether Slurm refused and would refuse again; after any other error a new try may succeed."""
    return was_refused(error) or error.startswith(f"{STALE}: ")


def will_pass(error: str) -> bool:
    """Return whether a provider's error is about what passes by itself, and no refusal of the request."""
    return error.startswith((CAPACITY, f"{NOT_YET}: "))


def was_refused(error: str) -> bool:
    """Return whether Slurm refused the request, and changed nothing."""
    return error.startswith(f"{REFUSED}: ")


def was_not_tried(error: str) -> bool:
    """Return whether the action was skipped, because the command before it hung or was never sent."""
    return error.startswith(f"{NOT_TRIED}: ")
