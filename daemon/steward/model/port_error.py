"""How a call of a port fails: kinds that say what may be done next. `ports` has them under the same names."""


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
