"""Heartbeats as bytes: 500 of them come in each second on a big cluster, so they are spared the way through JSON."""

from steward.adapters.wire.frames import BEAT

_HEAD = b'{"t":"' + BEAT.encode() + b'","sent":'
_SENT_AT = 4 + len(_HEAD)
_ECHO = b'{"t":"' + BEAT.encode() + b'","echo":'
_PING = b'{"t":"' + BEAT.encode() + b'","now":'
_SEAL = b',"seal":"'
_MAX = 1e15


def beat_in(data: bytes) -> tuple[float, bytes, str] | None:
    """The time of a heartbeat, the same as it is written, and the seal, if `data` is the whole frame of one as `pack`
    writes it; None for anything else."""
    if not data.startswith(_HEAD, 4) or int.from_bytes(data[:4], "big") != len(data) - 4 or data[-2:] != b'"}':
        return None
    time, _, seal = data[_SENT_AT:-2].partition(_SEAL)
    try:
        sent = float(time)
    except ValueError:
        return None
    return (sent, time, seal.decode("ascii", "replace")) if -_MAX < sent < _MAX else None


def ping(now: bytes, seal: str) -> bytes:
    """The frame that asks for a heartbeat at once: an answer to none."""
    return _framed(b'%s%s,"seal":"%s"}' % (_PING, now, seal.encode()))


def reply(echo: bytes, now: bytes, seal: str) -> bytes:
    """The frame that answers a heartbeat, length and all, with both times as JSON writes them."""
    body = b'%s%s,"now":%s,"seal":"%s"}' % (_ECHO, echo, now, seal.encode())
    return _framed(body)


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body
