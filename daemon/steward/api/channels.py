"""The pages of notification channels: the state of each, and a test message."""

from typing import Any

from starlette.exceptions import HTTPException

from steward.api.shapes import shape
from steward.workflows.notify import ChannelWorker, NotifyDesk

Json = dict[str, Any]


def channels_view(desk: NotifyDesk | None) -> list[Json]:
    """Return every channel with its filter, the queue length, the last delivery and the last error."""
    return [_view(worker) for worker in desk.workers] if desk else []


def test_channels(desk: NotifyDesk | None, who: str, name: str) -> Json:
    """Send a test message and return each channel's result.

    Raises HTTPException if there is no such channel, or none at all.
    """
    told = dict(desk.test(who, name)) if desk else {}
    if not told:
        what = f"no channel is called {name}" if name else "no channel is configured"
        raise HTTPException(404, f"{what}: see [[notify]] in the settings")
    return {"by": who, "channels": told}


def _view(worker: ChannelWorker) -> Json:
    channel = worker.channel
    return {
        "kind": channel.kind.value,
        **shape(channel.rule),
        "queued": worker.queued,
        "last_sent": worker.last_sent,
        "last_error": worker.last_error,
    }
