"""Find user names by user id."""

import pwd
import time
from collections.abc import Callable

_KEPT_S = 60.0
_MOST = 20_000


class UserNames:
    """A cache of user names. Thread-safe. A name may be `_KEPT_S` old."""

    def __init__(
        self, look_up: Callable[[int], str] | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Use `look_up` to find names; it raises KeyError or OverflowError for an id without a name."""
        self._look_up, self._monotonic = look_up or _of_this_machine, monotonic
        self._known: dict[int, tuple[str, float]] = {}

    def __call__(self, uid: int) -> str:
        """Return the user's name, or the id as text if this machine knows no name."""
        known, now = self._known.get(uid), self._monotonic()
        if known is not None and now < known[1]:
            return known[0]
        try:
            name = self._look_up(uid)
        except (KeyError, OverflowError):
            name = str(uid)
        if len(self._known) >= _MOST:
            self._known = {}
        self._known[uid] = (name, now + _KEPT_S)
        return name


def _of_this_machine(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


user_name = UserNames()


def login(uid: int) -> str:
    """Return the user's login name, or `uid NUMBER` if there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
