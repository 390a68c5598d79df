"""Every frame of both directions, with anything in any place of it: understood, or refused in one clear line.

A frame type without a sample (tests/builders/frames.py) fails the first two tests.
"""

import copy
import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from steward.adapters.wire.frames import Frame, Malformed, unpack
from steward.adapters.wire.seal import PeerRole, digest
from steward.agent.agent import Agent
from steward.head.hearing import Hearing
from steward.ports import Permanent
from tests.builders.frames import READERS, SAMPLES, places_of, read

BARE = {"withdraw", "check_now", "set_up"}
"""Types that are read where they are heard: by `text`, `number` and `SetUpParts` (tests below)."""

NASTY: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, -1, 2**63, 10**400, 1.5, 1e308, float("inf"), "", "x" * 2000, "n1\nn2", "\x1b[31mred"),
        *(
            "\0",
            "\ud800",
            "\u202e",
            "../../etc/passwd",
            "a b=c",
            "[[[",
            [],
            {},
            [[]] * 300,
            {"t": {}},
            [None],
            ["x" * 500],
        ),
    ]
)


@st.composite
def hurt(draw: st.DrawFn, good: Any) -> Any:
    """A good frame with something else, or nothing, in up to three places of it."""
    frame = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        places = list(places_of(frame))
        *path, last = draw(st.sampled_from(places)) if places else ("more",)
        target = frame
        for step in path:
            target = target[step]
        if isinstance(target, dict) and draw(st.integers(0, 4)) == 0:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(draw(NASTY))
    return frame


def is_one_line(error: Exception) -> None:
    assert str(error).isprintable()
    assert len(str(error)) < 1000


def test_every_reader_of_frames_is_fuzzed() -> None:
    assert set(READERS) == set(SAMPLES)


@pytest.mark.parametrize("hearer", [Hearing, Agent.hear], ids=["head", "agent"])
def test_every_type_that_is_heard_has_a_sample(hearer: Callable[..., object]) -> None:
    heard = set(re.findall(r'case "([^"]+)"', inspect.getsource(hearer)))
    assert heard
    assert heard <= {sample["t"] for sample in SAMPLES.values() if "t" in sample} | BARE | {"opted"}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_sample_is_understood(name: str) -> None:
    assert read(name, copy.deepcopy(SAMPLES[name])) is not None


@pytest.mark.parametrize("name", sorted(SAMPLES))
@settings(max_examples=40, database=None, phases=(Phase.generate,))
@given(data=st.data())
def test_a_frame_with_anything_anywhere_is_understood_or_refused_in_one_line(name: str, data: st.DataObject) -> None:
    frame = data.draw(hurt(SAMPLES[name]))
    try:
        understood = read(name, frame)
    except Malformed as error:
        is_one_line(error)
        return
    assert "\x1b" not in repr(understood)


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("instead", [None, 7, "text", [], [1]], ids=repr)
def test_what_is_no_object_is_no_record(name: str, instead: object) -> None:
    if "frame" in inspect.signature(READERS[name]).parameters:
        return  # the wire itself gives objects only
    with pytest.raises((Malformed, AttributeError)):
        read(name, instead)


@pytest.mark.parametrize("depth", [200, 900, 990, 5000])
def test_a_frame_that_is_nested_deeply_is_refused_before_its_sender_is_known(depth: int) -> None:
    body = ('{"t":"hello","x":' + "[" * depth + "]" * depth + "}").encode()
    try:
        digest(unpack(body), PeerRole.AGENT, "nonce")
    except Permanent as error:
        is_one_line(error)


def test_a_frame_of_plain_depth_has_a_digest() -> None:
    frame: Frame = json.loads(json.dumps(SAMPLES["report"]))
    assert digest(frame, PeerRole.AGENT, "nonce") != digest(frame, PeerRole.HEAD, "nonce")
