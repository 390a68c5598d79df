"""Rules between the keys of a `[[notify]]` table. No message quotes a URL or a secret."""

from collections.abc import Iterable, Iterator

from steward.model.notify import ChannelKind
from steward.model.settings.errors import Problem
from steward.model.settings.notify import NotifySettings

_NEEDED = {ChannelKind.MAIL: "to", ChannelKind.COMMAND: "command"}


def channel_problems(channels: Iterable[NotifySettings]) -> Iterator[Problem]:
    """Names are unique, and each channel has what its kind needs."""
    seen: set[str] = set()
    for number, one in enumerate(channels):
        place = f"notify[{number}]"
        if one.name in seen:
            yield Problem.of(f"{place}.name", one.name, "a name that no other channel has")
        seen.add(one.name)
        yield from _targets(place, one)


def _targets(place: str, one: NotifySettings) -> Iterator[Problem]:
    if one.kind is ChannelKind.WEBHOOK:
        if (one.url is None) == (one.url_file is None):
            yield Problem(key=f"{place}.url", text=f"{place} (kind webhook): give one of url and url_file")
        elif one.url is not None and not one.url.get_secret_value().startswith(("https://", "http://")):
            yield Problem(
                key=f"{place}.url", text=f"{place}.url: write http://... or https://... (it is not shown here)"
            )
    elif not getattr(one, needed := _NEEDED[one.kind]):
        yield Problem(key=f"{place}.{needed}", text=f"{place} (kind {one.kind.value}): give {needed}")
    if one.secret is not None and one.secret_file is not None:
        yield Problem(key=f"{place}.secret", text=f"{place}: give only one of secret and secret_file")
    if wrong := [address for address in one.to if address.startswith("-") or not address.isprintable()]:
        yield Problem.of(f"{place}.to", wrong[0], "a mail address, for example ops@example.org")
    if not one.levels:
        yield Problem.of(f"{place}.levels", [], "at least one of info, warning and error")
