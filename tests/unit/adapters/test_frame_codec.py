"""One codec holds what is said on a record's fields, both ways."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from steward.adapters.codec import FrameCodec
from steward.adapters.wire.frames import Malformed
from steward.model.bounds import (
    Age,
    Called,
    Count,
    First,
    Flat,
    Form,
    Given,
    Last,
    Lenient,
    MaxLen,
    Printable,
    Seconds,
    Sparse,
    Uncut,
)
from steward.model.health import Outcome
from steward.model.ids import NodeName

NOBODY = NodeName("")


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: Count


@dataclass(frozen=True, kw_only=True)
class Outer:
    node: Annotated[NodeName, Given()] = NOBODY
    word: Annotated[str, Form(re.compile("[a-z]+"))] = "a"
    foreign: Annotated[str, Printable(8)] = ""
    path: Annotated[str, Uncut(8)] = ""
    outcome: Annotated[Outcome, Called("result")] = Outcome.PASSED
    inner: Annotated[Inner, Flat()] = Inner(size=1)
    inners: Annotated[tuple[Inner, ...], First(2)] = ()
    last: Annotated[tuple[int, ...], Last(2)] = ()
    names: Annotated[frozenset[Annotated[str, MaxLen(4)]], MaxLen(3)] = frozenset()
    seen: Annotated[float | None, Age(most=100.0, digits=1), Sparse()] = None
    quiet_s: Annotated[float, Seconds(100.0), Sparse()] = 0.0
    is_new: Annotated[bool, Sparse()] = False
    is_loud: Annotated[bool, Lenient()] = False


CODEC = FrameCodec(Outer, "outer")


def _read(**fields: Any) -> Outer:
    return CODEC.read({**CODEC.write(Outer()), **fields}, 1000.0)


def test_what_is_written_is_read_by_the_other_clock() -> None:
    value = Outer(
        node=NodeName("n1"),
        outcome=Outcome.FAILED,
        inner=Inner(size=3),
        inners=(Inner(size=4),),
        names=frozenset({"b", "a"}),
        seen=990.04,
        quiet_s=2.0,
        is_loud=True,
    )
    frame = CODEC.write(value, 1000.0)
    assert frame["t"] == "outer"
    assert (frame["size"], frame["names"], frame["seen"], frame["result"]) == (3, ["a", "b"], 10.0, "failed")
    assert CODEC.read(frame, 2000.0, node=NodeName("n1")) == Outer(**{**vars(value), "seen": 1990.0})


def test_what_is_empty_and_may_be_is_left_out_and_comes_back_as_it_was() -> None:
    frame = CODEC.write(Outer())
    assert {"seen", "quiet_s", "node"} & frame.keys() == set()
    assert CODEC.read(frame) == Outer()


def test_in_an_upgrade_a_new_field_that_does_not_come_has_its_default_and_an_unknown_one_is_left_out() -> None:
    frame = {**CODEC.write(Outer(is_new=True)), "later": {"a": 1}}
    assert CODEC.read(frame) == Outer(is_new=True)
    del frame["is_new"]
    assert CODEC.read(frame) == Outer()


def test_foreign_text_is_cut_a_path_is_whole_or_nothing_and_lists_keep_their_ends() -> None:
    frame = CODEC.write(
        Outer(foreign="caf\u00e9\nbar-bar", path="/a/very/long/path", inners=(Inner(size=1),) * 3, last=(1, 2, 3))
    )
    assert (frame["foreign"], frame["path"], len(frame["inners"]), frame["last"]) == ("caf? ...", "", 2, [2, 3])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"word": "A"}, "word='A' is not a name that is allowed here"),
        ({"foreign": "caf\u00e9"}, "foreign is not a printable text of at most 8 characters"),
        ({"foreign": "123456789"}, "foreign is not a printable text of at most 8 characters"),
        ({"result": []}, "result=[] is not a known value"),
        ({"size": True}, "size=True is not a whole number from 0 to 1000000"),
        ({"size": 10**7}, "size=10000000 is not a whole number from 0 to 1000000"),
        ({"inners": [{"size": 1}] * 3}, "inners is not a list of at most 2"),
        ({"inners": [7]}, "an element of a list is not an object"),
        ({"inners": None}, "inners is not a list of at most 2"),
        ({"names": ["abcde"]}, "names is not a printable text of at most 4 characters"),
        ({"seen": "1"}, "seen='1' is not a number"),
        ({"is_new": None}, "is_new=None is neither true nor false"),
    ],
)
def test_what_is_out_of_its_bounds_is_refused_in_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(Malformed, match=f"^{re.escape(said)}$"):
        _read(**wrong)


def test_a_time_that_passed_is_brought_into_its_bounds_and_no_boolean_is_false() -> None:
    read = _read(seen=1e9, quiet_s=-5.0, is_loud="yes")
    assert (read.seen, read.quiet_s, read.is_loud) == (900.0, 0.0, False)


def test_a_type_that_has_no_place_in_a_frame_is_an_error_of_the_programmer() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd:
        what: bytes

    with pytest.raises(TypeError, match="bytes"):
        FrameCodec(Odd)
