"""Who may call the AWS endpoint, how often, and what is noted of it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from botocore import UNSIGNED
from botocore.exceptions import ClientError

from steward.api.admission import Rate, Replays
from steward.api.json11.errors import ApiError
from steward.client import OperationError
from steward.model.access import Caller, payload
from tests.fakes.aws_bench import (
    ARN,
    HANDLERS,
    KEY,
    READER,
    AwsBench,
    Members,
    an_aws_endpoint,
    code_of,
    list_clusters,
    post,
    signed,
)
from tests.fakes.clock import FakeClock
from tests.fakes.munge import FakeMunge
from tests.fakes.store import FakeStore


def test_a_handler_is_told_who_asks_and_from_where(aws: AwsBench) -> None:
    callers: list[Caller] = []

    def listen(caller: Caller, members: Members) -> Members:
        callers.append(caller)
        return list_clusters(caller, members)

    aws.handlers["ListClusters"] = listen
    number = aws.boto().list_clusters()["ResponseMetadata"]["RequestId"]
    aws.client(uid=900).operate("ListClusters", {})
    assert callers[0] == Caller(user="platform", method="sigv4", address="127.0.0.1", request=number)
    assert callers[1].method == "munge"


def test_nobody_reads_without_proof(aws: AwsBench) -> None:
    with pytest.raises(ClientError) as refused:
        aws.boto(signature_version=UNSIGNED).list_clusters()
    assert code_of(refused.value) == ("MissingAuthenticationTokenException", 400)


def test_a_wrong_secret_is_refused(aws: AwsBench) -> None:
    with pytest.raises(ClientError) as refused:
        aws.boto(replace(KEY, secret="a secret of somebody else")).list_clusters()
    assert code_of(refused.value) == ("InvalidSignatureException", 400)


def test_a_clock_that_is_far_off_is_told(aws: AwsBench) -> None:
    aws.clock.by += 3600
    with pytest.raises(ClientError, match="set the clocks") as refused:
        aws.boto().list_clusters()
    assert code_of(refused.value) == ("RequestExpired", 400)


def test_a_key_for_reading_may_read_and_not_change(aws: AwsBench) -> None:
    boto = aws.boto(READER)
    assert boto.list_clusters()["ClusterSummaries"]
    with pytest.raises(ClientError, match="dashboard may read, but not call DeleteCluster") as refused:
        boto.delete_cluster(ClusterName="ml")
    assert code_of(refused.value) == ("AccessDeniedException", 400)


def test_an_ordinary_user_with_munge_may_read_and_not_change(aws: AwsBench) -> None:
    assert aws.client(uid=1000).operate("ListClusters", {})["ClusterSummaries"][0]["ClusterName"] == "ml"
    with pytest.raises(OperationError) as refused:
        aws.client(uid=1000).operate("DeleteCluster", {"ClusterName": "ml"})
    assert refused.value.code == "AccessDeniedException"


def test_while_munged_is_away_one_is_to_try_again(aws: AwsBench) -> None:
    proof = FakeMunge(aws.munged).encode(payload("POST", "/", b"{}", "SageMaker.ListClusters"))
    aws.munged.up = False
    answer = post(aws, b"{}", {"Authorization": f"MUNGE {proof}", "X-Amz-Target": "SageMaker.ListClusters"})
    assert (answer.status_code, answer.json()["__type"]) == (503, "ServiceUnavailable")


def test_a_munge_proof_is_good_for_its_own_operation_only_and_once(aws: AwsBench) -> None:
    body = b'{"ClusterName": "ml"}'
    proof = FakeMunge(aws.munged).encode(payload("POST", "/", body, "SageMaker.DescribeCluster"))
    headers = {"Authorization": f"MUNGE {proof}", "X-Amz-Target": "SageMaker.DeleteCluster"}
    assert post(aws, body, headers).json()["__type"] == "UnrecognizedClientException"
    proof = FakeMunge(aws.munged).encode(payload("POST", "/", body, "SageMaker.DeleteCluster"))
    headers["Authorization"] = f"MUNGE {proof}"
    assert [post(aws, body, headers).status_code for _ in range(2)] == [200, 400]


def test_a_captured_change_is_not_carried_out_again(aws: AwsBench) -> None:
    """Until its time is over; blanks in the header make no other request of it."""
    done: list[str] = []

    def delete(_caller: Caller, members: Members) -> Members:
        done.append(members["ClusterName"])
        return {"ClusterArn": ARN}

    aws.handlers["DeleteCluster"] = delete
    body = b'{"ClusterName": "ml"}'
    captured = signed("DeleteCluster", body, url=aws.url)
    assert post(aws, body, captured).status_code == 200
    for late_s, blank in ((0.0, " "), (250.0, " "), (250.0, "  ")):
        aws.clock.by += late_s
        again = captured | {"Authorization": captured["Authorization"].replace(" ", blank, 1)}
        assert post(aws, body, again).json()["__type"] in {"ThrottlingException", "RequestExpired"}
    assert done == ["ml"]
    aws.clock.by = 0.0
    assert post(aws, body, signed("DeleteCluster", body, url=aws.url, agent="another")).status_code == 200


def test_a_captured_read_may_come_again(aws: AwsBench) -> None:
    captured = signed("ListClusters", b"{}", url=aws.url)
    assert [post(aws, b"{}", captured).status_code for _ in range(2)] == [200, 200]


def test_equal_changes_of_one_second_are_signed_anew_by_the_sdk_and_all_done(aws: AwsBench) -> None:
    boto = aws.boto(retries={"total_max_attempts": 5})
    for _ in range(3):
        assert boto.delete_cluster(ClusterName="ml")["ClusterArn"]


@pytest.mark.parametrize("count", [3, 200_000])
def test_the_memory_of_signatures_is_bounded(count: int) -> None:
    clock = FakeClock(at=1000.0)
    replays = Replays(skew_s=300, now=clock.now, first_use=FakeStore(now=clock.now).first_use)
    for number in range(count):
        replays.take(str(number))
    with pytest.raises(ApiError, match="sign it anew"):
        replays.take(str(count - 1))
    clock.at += 601
    replays.take(str(count - 1))


def test_a_captured_change_is_not_carried_out_again_by_a_head_that_began_anew() -> None:
    clock = FakeClock(at=1000.0)
    store = FakeStore(now=clock.now)
    Replays(skew_s=300, now=clock.now, first_use=store.first_use).take("one")
    restarted = Replays(skew_s=300, now=clock.now, first_use=store.first_use)
    with pytest.raises(ApiError, match="sign it anew"):
        restarted.take("one")
    restarted.take("another")


def test_a_signature_that_cannot_be_written_down_is_not_taken(aws: AwsBench) -> None:
    body = b'{"ClusterName": "ml"}'
    aws.store.broken = "the disk is full"
    assert post(aws, body, signed("DeleteCluster", body, url=aws.url)).json()["__type"] == "ServiceUnavailable"


def test_every_change_is_in_the_audit_with_who_and_how_it_ended(aws: AwsBench) -> None:
    boto = aws.boto()
    number = boto.delete_cluster(ClusterName="ml")["ResponseMetadata"]["RequestId"]
    with pytest.raises(ClientError):
        boto.delete_cluster(ClusterName="other")
    with pytest.raises(ClientError):
        aws.boto(READER).delete_cluster(ClusterName="ml")
    boto.list_clusters()
    assert [event.kind for event in aws.events] == ["api.DeleteCluster"] * 3
    done, unknown, denied = (dict(event.data) for event in aws.events)
    assert done == {
        "who": "platform",
        "way": "sigv4",
        "from": "127.0.0.1",
        "request": number,
        "outcome": "done",
        "asked": '{"ClusterName": "ml"}',
    }
    assert unknown["outcome"] == "ResourceNotFound"
    assert (denied["who"], denied["outcome"]) == ("dashboard", "AccessDeniedException")


def test_the_audit_line_of_a_change_is_short_and_printable(aws: AwsBench) -> None:
    with pytest.raises(ClientError):
        aws.boto().delete_cluster(ClusterName="\x1b\n" * 10_000)
    asked = dict(aws.events[0].data)["asked"]
    assert asked.isprintable()
    assert len(asked) <= 400


def test_who_calls_too_often_is_told_to_wait() -> None:
    slow = Rate(per_s=1, burst=2)
    with an_aws_endpoint(HANDLERS, reads=slow, writes=slow) as aws:
        boto = aws.boto()
        boto.delete_cluster(ClusterName="ml")
        boto.delete_tags(ResourceArn=ARN, TagKeys=["a"])
        with pytest.raises(ClientError, match="Rate exceeded") as refused:
            boto.delete_tags(ResourceArn=ARN, TagKeys=["b"])
        assert code_of(refused.value) == ("ThrottlingException", 400)
        assert len(aws.events) == 2
        assert boto.list_clusters()


def test_who_may_not_change_cannot_fill_the_audit_either() -> None:
    slow = Rate(per_s=0.001, burst=2)
    with an_aws_endpoint(HANDLERS, reads=slow, writes=slow) as aws:
        codes = [_refusal(lambda: aws.client(uid=1000).operate("DeleteCluster", {"ClusterName": "ml"})) for _ in "1234"]
        assert codes == ["AccessDeniedException"] * 2 + ["ThrottlingException"] * 2
        assert len(aws.events) == 2


def _refusal(call: Callable[[], object]) -> str:
    with pytest.raises(OperationError) as refused:
        call()
    return refused.value.code
