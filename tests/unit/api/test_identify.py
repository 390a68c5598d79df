"""Which signed requests are believed: those of real AWS clients, in time and unchanged, and no others."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from steward.api.identify import Received, Sigv4, signature
from steward.api.json11.errors import ApiError, Code
from steward.model.access import AccessKey
from tests.fakes.aws_bench import KEY, READER, REGION, signed

BODY = b'{"ClusterName": "x"}'
KEYS = {key.id: key for key in (KEY, READER)}


def received(headers: Mapping[str, str], body: bytes = BODY, **more: str) -> Received:
    named = {"host": "head1:6860", **{name.lower(): value for name, value in headers.items()}}
    fields = {"id": "r1", "method": "POST", "path": "/", "query": "", "address": "10.0.0.1"} | more
    return Received(headers=tuple(named.items()), body=body, **fields)


def now() -> float:
    return datetime.now(UTC).timestamp()


def gate(late_s: float = 0.0) -> Sigv4:
    return Sigv4(key_of=KEYS.get, region=REGION, skew_s=300, now=lambda: now() + late_s)


def refusal(request: Received, late_s: float = 0.0) -> Code:
    with pytest.raises(ApiError) as refused:
        gate(late_s).identify(request)
    return refused.value.code


def test_what_botocore_signs_is_believed() -> None:
    identity = gate().identify(received(signed("DescribeCluster", BODY)))
    assert (identity.user, identity.method, identity.read_only) == ("platform", "sigv4", False)


def test_a_key_that_may_only_read_says_so() -> None:
    assert gate().identify(received(signed("DescribeCluster", BODY, READER))).read_only


def test_a_wrong_secret_is_refused() -> None:
    wrong = replace(KEY, secret="a secret that is not that one")
    assert refusal(received(signed("DescribeCluster", BODY, wrong))) is Code.SIGNATURE


def test_an_unknown_key_is_refused() -> None:
    assert refusal(received(signed("DescribeCluster", BODY, replace(KEY, id="AKIDNOBODY")))) is Code.UNKNOWN_CLIENT


@pytest.mark.parametrize("late_s", [-290, 290])
def test_a_clock_that_is_a_little_off_is_forgiven(late_s: float) -> None:
    gate(late_s).identify(received(signed("DescribeCluster", BODY)))


@pytest.mark.parametrize("late_s", [-310, 310])
def test_a_request_from_too_long_ago_or_from_the_future_is_refused(late_s: float) -> None:
    assert refusal(received(signed("DescribeCluster", BODY)), late_s) is Code.EXPIRED


def test_a_changed_body_is_refused() -> None:
    assert refusal(received(signed("DescribeCluster", BODY), b'{"ClusterName": "y"}')) is Code.SIGNATURE


@pytest.mark.parametrize(
    ("name", "value"), [("X-Amz-Target", "SageMaker.DeleteCluster"), ("Content-Type", "text/plain"), ("Host", "other")]
)
def test_a_changed_header_is_refused(name: str, value: str) -> None:
    headers = signed("DescribeCluster", BODY) | {name: value}
    assert refusal(received(headers)) is Code.SIGNATURE


@pytest.mark.parametrize("changed", [{"method": "PUT"}, {"path": "/other"}, {"query": "a=b"}])
def test_a_changed_request_line_is_refused(changed: dict[str, str]) -> None:
    assert refusal(received(signed("DescribeCluster", BODY), BODY, **changed)) is Code.SIGNATURE


def test_a_second_target_beside_the_signed_one_is_refused() -> None:
    request = received(signed("DescribeCluster", BODY))
    twice = replace(request, headers=(*request.headers, ("x-amz-target", "SageMaker.DeleteCluster")))
    assert refusal(twice) is Code.SIGNATURE


def _signed_with(**more: str) -> dict[str, str]:
    headers = {"X-Amz-Target": "SageMaker.ListClusters", **more}
    request = AWSRequest(method="POST", url="http://head1:6860/", data=BODY, headers=headers)
    SigV4Auth(Credentials(KEY.id, KEY.secret), "sagemaker", REGION).add_auth(request)
    return dict(request.headers.items())


def test_a_session_token_is_taken_when_it_is_signed() -> None:
    gate().identify(received(_signed_with(**{"X-Amz-Security-Token": "token"})))


def test_a_session_token_that_was_added_on_the_way_is_refused() -> None:
    assert refusal(received(_signed_with() | {"X-Amz-Security-Token": "token"})) is Code.SIGNATURE


def test_a_target_that_is_not_signed_is_refused() -> None:
    request = AWSRequest(method="POST", url="http://head1:6860/", data=BODY)
    SigV4Auth(Credentials(KEY.id, KEY.secret), "sagemaker", REGION).add_auth(request)
    headers = dict(request.headers.items()) | {"X-Amz-Target": "SageMaker.DeleteCluster"}
    assert refusal(received(headers)) is Code.SIGNATURE


@pytest.mark.parametrize("digest", ["UNSIGNED-PAYLOAD", hashlib.sha256(b"other").hexdigest()])
def test_a_body_is_never_left_unsigned(digest: str) -> None:
    assert refusal(received(_signed_with(**{"X-Amz-Content-SHA256": digest}))) is Code.SIGNATURE


def test_a_digest_header_that_tells_the_truth_is_taken() -> None:
    gate().identify(received(_signed_with(**{"X-Amz-Content-SHA256": hashlib.sha256(BODY).hexdigest()})))


@pytest.mark.parametrize(("region", "service"), [("us-east-1", "sagemaker"), (REGION, "ec2")])
def test_a_signature_for_another_region_or_service_is_refused(region: str, service: str) -> None:
    request = AWSRequest(
        method="POST", url="http://head1:6860/", data=BODY, headers={"X-Amz-Target": "SageMaker.ListClusters"}
    )
    SigV4Auth(Credentials(KEY.id, KEY.secret), service, region).add_auth(request)
    assert refusal(received(dict(request.headers.items()))) is Code.SIGNATURE


def test_a_date_that_is_not_the_scopes_is_refused() -> None:
    headers = signed("ListClusters", BODY) | {"X-Amz-Date": "20150830T123600Z"}
    assert refusal(received(headers)) is Code.SIGNATURE


@pytest.mark.parametrize("text", ["", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a/b, Signature=c", "Bearer x"])
def test_half_a_signature_is_refused(text: str) -> None:
    assert refusal(received({"Authorization": text})) is Code.INCOMPLETE


# Published by AWS as its test suite for implementers of Signature Version 4.
EXAMPLE = AccessKey(id="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", user="x")
HOST, DATE = ("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")
FORM = ("content-type", "application/x-www-form-urlencoded")
VECTORS = [
    ("get-vanilla", "GET", "", (HOST, DATE), b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ("post-vanilla", "POST", "", (HOST, DATE), b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    (
        "get-vanilla-query-order-key-case",
        "GET",
        "Param2=value2&Param1=value1",
        (HOST, DATE),
        b"",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    (
        "post-x-www-form-urlencoded",
        "POST",
        "",
        (FORM, HOST, DATE),
        b"Param1=value1",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
]


@pytest.mark.parametrize(
    ("_name", "method", "query", "headers", "body", "wanted"), VECTORS, ids=[v[0] for v in VECTORS]
)
def test_signatures_are_those_of_aws_published_vectors(
    _name: str, method: str, query: str, headers: tuple[tuple[str, str], ...], body: bytes, wanted: str
) -> None:
    request = Received(id="r", method=method, path="/", query=query, headers=headers, body=body, address="")
    assert signature(EXAMPLE, "us-east-1", "service", request, [name for name, _ in headers]) == wanted
