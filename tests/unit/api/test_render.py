"""Answers have the model's shape, or are not sent."""

from typing import Any

import pytest

from steward.api.json11.render import Misshapen, render
from steward.api.json11.service import load

SERVICE = load()
SUMMARY: dict[str, Any] = {
    "ClusterArn": "arn:aws:sagemaker:steward-1:000000000000:cluster/abcdefghij12",
    "ClusterName": "ml",
    "CreationTime": 1700000000.12345,
    "ClusterStatus": "InService",
}


def answer(operation: str, **members: Any) -> dict[str, Any] | None:
    return render(SERVICE.output_shape(operation), members)


def clusters(**changed: Any) -> Any:
    rendered = answer("ListClusters", ClusterSummaries=[SUMMARY | changed])
    assert rendered is not None
    return rendered["ClusterSummaries"][0]


def test_times_are_numbers_to_the_millisecond() -> None:
    assert clusters()["CreationTime"] == 1700000000.123


def test_what_is_none_is_left_out() -> None:
    assert "NextToken" not in (answer("ListClusters", ClusterSummaries=[], NextToken=None) or {})


def test_an_empty_list_is_left_out_where_the_model_wants_an_item() -> None:
    assert answer("BatchDeleteClusterNodes", Successful=["i-0123456789abcdef0"], Failed=[]) == {
        "Successful": ["i-0123456789abcdef0"]
    }
    assert answer("BatchRebootClusterNodes", Failed=[]) == {"Failed": []}


def test_an_operation_without_output_has_no_body() -> None:
    assert render(None, {}) is None
    with pytest.raises(Misshapen, match="no output"):
        render(None, {"A": 1})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"Color": "red"}, "has no member Color"),
        ({"ClusterStatus": None}, "ClusterStatus is required"),
        ({"ClusterStatus": "Sleeping"}, "not one of Creating"),
        ({"ClusterName": 7}, "ClusterName is a int, not a str"),
        ({"CreationTime": "now"}, "CreationTime is a str"),
        ({"CreationTime": float("nan")}, "JSON cannot say"),
        ({"CreationTime": True}, "CreationTime is a bool"),
    ],
)
def test_what_the_model_does_not_say_is_never_sent(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(Misshapen, match=why):
        clusters(**changed)
