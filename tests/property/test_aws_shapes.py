"""Every input from the service's own model: the good is taken, one thing wrong is named, junk is refused."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steward.api.json11 import route, validate
from steward.api.json11.errors import ApiError, Code
from steward.api.json11.service import SERVED, load
from tests.builders.aws_shapes import JSON, Broken, broken, valid

SERVICE = load()
A_FEW = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("operation", SERVED)
def test_what_the_model_allows_is_taken_as_it_is(operation: str) -> None:
    shape = SERVICE.input_shape(operation)

    @A_FEW
    @given(members=valid(shape))
    def check(members: dict[str, Any]) -> None:
        assert validate.read(shape, route.parse(json.dumps(members).encode())) == members

    check()


@pytest.mark.parametrize("operation", SERVED)
def test_one_thing_wrong_is_refused_with_the_name_of_the_member(operation: str) -> None:
    shape = SERVICE.input_shape(operation)

    @A_FEW
    @given(given_input=broken(shape))
    def check(given_input: Broken) -> None:
        with pytest.raises(ApiError) as refused:
            validate.read(shape, given_input.members)
        assert refused.value.code is Code.INVALID
        assert f"at '{given_input.place}' failed to satisfy constraint" in refused.value.message

    check()


@given(operation=st.sampled_from(SERVED), members=JSON)
def test_any_json_at_all_is_taken_or_refused_and_nothing_else(operation: str, members: Any) -> None:
    with contextlib.suppress(ApiError):
        validate.read(SERVICE.input_shape(operation), route.parse(json.dumps(members).encode()))


@given(operation=st.sampled_from(SERVED), data=st.data())
def test_known_members_with_any_value_are_taken_or_refused_and_nothing_else(
    operation: str, data: st.DataObject
) -> None:
    shape = SERVICE.input_shape(operation)
    members = data.draw(st.dictionaries(st.sampled_from(sorted(shape.members)), JSON))
    with contextlib.suppress(ApiError):
        validate.read(shape, members)


@given(
    body=st.binary(max_size=200) | st.text(alphabet='{}[]",:0123456789eE+-.\\utrufalsn', max_size=200).map(str.encode)
)
def test_any_bytes_at_all_are_an_object_or_refused(body: bytes) -> None:
    with contextlib.suppress(ApiError):
        assert isinstance(route.parse(body), dict)
