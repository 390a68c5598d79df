"""Heartbeats as bytes: 500 of them come in each second on a big cluster, so they are spared the way through JSON."""

from steward.adapters.wire import BEAT

_HEAD = b'{"t":"' + BEAT.encode() + b'","sent":'
_SENT_AT = 4 + len(_HEAD)
_MAX = 1e15


def sent_in(data: bytes) -> float | None:
    """The `sent` of a heartbeat, if `data` is the whole frame of one as `pack` writes it; None for anything else."""
    if not data.startswith(_HEAD, 4) or int.from_bytes(data[:4], "big") != len(data) - 4:
        return None
    try:
        sent = float(data[_SENT_AT:-1])
    except ValueError:
        return None
    return sent if -_MAX < sent < _MAX else None


def reply(echo: float, now: float) -> bytes:
    """The frame that answers a heartbeat, length and all."""
    body = b'{"t":"%s","echo":%r,"now":%r}' % (BEAT.encode(), echo, now)
    return len(body).to_bytes(4, "big") + body
