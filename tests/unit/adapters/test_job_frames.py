"""Progress and stacks on the wire: times as ages, bounded, and nothing that is not printable."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.wire.frames import Frame, Malformed, pack
from steward.adapters.wire.job_messages import (
    MAX_BUNDLE,
    MAX_JOBS,
    PIECE,
    bundle_frames,
    bundle_of,
    progress_frame,
    progress_of,
)
from steward.adapters.wire.order_messages import order_frames, stacks_of
from steward.model.agent_action import CollectStacks
from steward.model.ids import JobId, Key, NodeName
from steward.model.job_report import Progress
from steward.model.why import Why
from steward.ports import Permanent

N1, J7 = NodeName("n1"), JobId(7)
FULL = Progress(
    job=J7,
    restart=2,
    node=N1,
    step=120,
    stepped=990.0,
    pace_s=2.5,
    checkpoint="/c/100",
    checkpoint_step=100,
    checkpointed=900.0,
    first_step=500.0,
    quiet_s=31.0,
    at=1000.0,
)


def test_times_are_the_heads_whatever_the_nodes_clock_says() -> None:
    (there,) = progress_of(progress_frame([FULL], 1000.0), N1, 50_000.0)
    assert there.stepped == 50_000.0 - 10.0
    assert there.checkpointed == 50_000.0 - 100.0
    assert there.first_step == 50_000.0 - 500.0
    assert (there.step, there.pace_s, there.checkpoint, there.checkpoint_step) == (120, 2.5, "/c/100", 100)
    assert (there.quiet_s, there.at, there.restart) == (31.0, 50_000.0, 2)


def test_what_is_not_known_stays_unknown() -> None:
    (there,) = progress_of(progress_frame([Progress(job=J7, restart=0, node=N1)], 5.0), N1, 9.0)
    assert there == Progress(job=J7, restart=0, node=N1, at=9.0)


def test_a_step_of_the_agents_future_was_made_now() -> None:
    late = Progress(job=J7, restart=0, node=N1, step=1, stepped=99.0)
    (there,) = progress_of(progress_frame([late], 5.0), N1, 9.0)
    assert there.stepped == pytest.approx(9.0, abs=0.01)


def test_the_fullest_frame_fits() -> None:
    longest = Progress(job=J7, restart=0, node=N1, step=10**18, checkpoint="/" + "c" * 254, stepped=1.0, at=2.0)
    pack(progress_frame([longest] * (MAX_JOBS + 5), 5.0))
    for frame in bundle_frames("7-0-1", '\n"\\' * MAX_BUNDLE):
        pack(frame)


@pytest.mark.parametrize(
    "record",
    [
        {"job": 0, "restart": 0},
        {"job": 7},
        {"job": 7, "restart": 0, "step": -1},
        {"job": 7, "restart": 0, "step": "12"},
        {"job": 7, "restart": 0, "step": 10**19},
        {"job": 7, "restart": 0, "stepped": "now"},
        {"job": 7, "restart": 0, "stepped": float("nan")},
        {"job": 7, "restart": 0, "quiet_s": float("-inf")},
        {"job": 2**32, "restart": 0},
        {"job": 7, "restart": 0, "checkpoint": "a\nb"},
        {"job": 7, "restart": 0, "checkpoint": "/" * 300},
        7,
    ],
)
def test_nonsense_about_one_job_is_left_out_and_the_others_count(record: object) -> None:
    others = {"job": 8, "restart": 0}
    assert [one.job for one in progress_of({"t": "progress", "jobs": [record, others]}, N1, 1.0)] == [8]


def test_too_many_jobs_are_malformed() -> None:
    with pytest.raises(Malformed):
        progress_of({"t": "progress", "jobs": [{"job": 7, "restart": 0}] * (MAX_JOBS + 1)}, N1, 1.0)


def an_order(name: str = "7-0-100", signal: str = "USR1") -> CollectStacks:
    why = Why(rule="job.hang", text="it stands still")
    return CollectStacks(key=Key("k"), why=why, job=J7, nodes=frozenset({N1}), name=name, signal=signal)


def sent(order: CollectStacks) -> Frame:
    (frame,) = order_frames(order)
    return frame


def test_an_order_comes_over_as_it_was() -> None:
    heard = stacks_of(sent(an_order()), N1)
    assert heard == replace(an_order(), key=heard.key, why=heard.why)
    assert stacks_of(sent(an_order(signal="")), N1).signal == ""


@pytest.mark.parametrize("order", [an_order(name="../x"), an_order(name=""), an_order(signal="KILL")])
def test_an_order_that_no_agent_would_take_is_not_sent(order: CollectStacks) -> None:
    with pytest.raises(Permanent):
        order_frames(order)


@pytest.mark.parametrize(
    "change", [{"signal": "KILL"}, {"signal": 9}, {"name": "a/b"}, {"name": ".."}, {"job": 0}, {"job": "7"}]
)
def test_an_order_that_is_none_is_malformed(change: Frame) -> None:
    with pytest.raises(Malformed):
        stacks_of({**sent(an_order()), **change}, N1)


@given(st.text(alphabet=st.sampled_from("ab\n\t ~"), max_size=3 * PIECE))
def test_a_text_comes_over_whole_and_the_last_piece_says_so(text: str) -> None:
    pieces = [bundle_of(frame) for frame in bundle_frames("7-0-1", text)]
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(piece.offset == number * PIECE for number, piece in enumerate(pieces))


def test_a_text_that_is_too_long_is_cut_off() -> None:
    pieces = [bundle_of(frame) for frame in bundle_frames("7-0-1", "x" * (MAX_BUNDLE + 99))]
    assert sum(len(piece.text) for piece in pieces) == MAX_BUNDLE


@pytest.mark.parametrize(
    "change",
    [
        {"text": "x" * (PIECE + 1)},
        {"text": "\x1b[31m"},
        {"text": None},
        {"offset": MAX_BUNDLE},
        {"offset": -1},
        {"name": "../../etc"},
    ],
)
def test_a_piece_that_is_none_is_malformed(change: Frame) -> None:
    (frame,) = bundle_frames("7-0-1", "text")
    with pytest.raises(Malformed):
        bundle_of({**frame, **change})
