"""Messages of several heads: that one follows another, and a request over HTTP that it passes to the other."""

import re
from dataclasses import dataclass
from typing import Annotated

from steward.adapters.codec import FrameCodec
from steward.adapters.wire.frames import Frame
from steward.model.bounds import Form, MaxLen, Range, Seconds
from steward.ports import Retryable

FOLLOWING = "following"
"""The type of the frame with which a follower greets each new connection, in place of a challenge."""
LONGEST_AGAIN_S = 5.0
MAX_PIECE = 46_080
"""The most bytes of a body in one frame, which holds them in base64."""
_MAX_HEADERS = 64
_LINE = 8192

# The greeting needs no proof, and so costs a follower next to nothing when all agents come at once: an agent only goes
# to heads that its own settings name, and the head that it finds there proves itself.


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerGreeting:
    """The head that leads, as `agent.head` names it (empty: none), and after how many seconds to ask here again."""

    leader: Annotated[str, MaxLen(270)] = ""
    again_s: Annotated[float, Seconds(LONGEST_AGAIN_S)] = 0.0


class HeadFollows(Retryable):
    """The end of a connection to a head that follows."""

    def __init__(self, word: FollowerGreeting) -> None:
        super().__init__(f"it follows {word.leader}" if word.leader else "it follows, and no head leads now")
        self.word = word


Headers = Annotated[tuple[Annotated[str, MaxLen(_LINE)], ...], MaxLen(_MAX_HEADERS)]
"""The headers of a request or an answer, as `name: value` each, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedRequest:
    """A request over HTTP, without its body, that a follower passes to the leader.

    `door` is the follower's port at which it came in, and `client` the address that it came from. `path` and `query`
    are as sent.
    """

    door: Annotated[str, MaxLen(16)]
    method: Annotated[str, MaxLen(16), Form(re.compile(r"[A-Z]{1,16}"), "is not a method of HTTP")]
    path: Annotated[str, MaxLen(_LINE)]
    query: Annotated[str, MaxLen(_LINE)]
    headers: Headers
    client: Annotated[str, MaxLen(64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedAnswer:
    """The leader's answer to a passed request, without its body."""

    status: Annotated[int, Range(100, 599)]
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPiece:
    """A piece of a body, in base64."""

    data: Annotated[str, MaxLen(4 * MAX_PIECE // 3)]
    is_last: bool


_GREETING = FrameCodec(FollowerGreeting, FOLLOWING)
_REQUEST = FrameCodec(PassedRequest, "passed_request")
_ANSWER = FrameCodec(PassedAnswer, "passed_answer")
_PIECE = FrameCodec(BodyPiece, "body")


def follower_greeting_frame(word: FollowerGreeting) -> Frame:
    return _GREETING.write(word)


def follower_greeting_of(frame: Frame) -> FollowerGreeting:
    """Return the greeting of a follower. Raises Malformed."""
    return _GREETING.read(frame)


def passed_request_frame(request: PassedRequest) -> Frame:
    return _REQUEST.write(request)


def passed_request_of(frame: Frame) -> PassedRequest:
    """Return the request in the frame. Raises Malformed."""
    return _REQUEST.read(frame)


def passed_answer_frame(answer: PassedAnswer) -> Frame:
    return _ANSWER.write(answer)


def passed_answer_of(frame: Frame) -> PassedAnswer:
    """Return the answer in the frame. Raises Malformed."""
    return _ANSWER.read(frame)


def body_frame(piece: BodyPiece) -> Frame:
    return _PIECE.write(piece)


def body_of(frame: Frame) -> BodyPiece:
    """Return the piece of a body in the frame. Raises Malformed."""
    return _PIECE.read(frame)
