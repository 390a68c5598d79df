"""The AWS endpoint's answers, as boto3, the `aws` command and our own client see them."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from steward.client import OperationError
from steward.model.access import Caller, payload
from steward.ports import Permanent, Retryable
from tests.fakes.aws_bench import ARN, KEY, REGION, AwsBench, Members, code_of, failing, list_clusters, post, signed
from tests.fakes.munge import FakeMunge
from tests.fakes.until import FACT_S


def test_boto3_gets_its_answer_with_times_and_a_request_id(aws: AwsBench) -> None:
    answer = aws.boto().list_clusters()
    (summary,) = answer["ClusterSummaries"]
    assert summary["ClusterName"] == "ml"
    assert summary["CreationTime"].timestamp() == 1700000000.5
    assert answer["ResponseMetadata"]["RequestId"]


def test_an_operation_without_output_is_answered_with_an_empty_body(aws: AwsBench) -> None:
    answer = aws.boto().delete_tags(ResourceArn=ARN, TagKeys=["a"])
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_modelled_error_becomes_its_class(aws: AwsBench) -> None:
    boto = aws.boto()
    with pytest.raises(boto.exceptions.ResourceNotFound) as refused:
        boto.delete_cluster(ClusterName="other")
    assert refused.value.response["Error"]["Message"] == "there is no cluster other"


def test_what_boto3_does_not_check_is_checked_here(aws: AwsBench) -> None:
    with pytest.raises(ClientError, match=r"1 validation error detected: Value 'a b!' at 'clusterName'") as refused:
        aws.boto(parameter_validation=True).delete_cluster(ClusterName="a b!")
    assert code_of(refused.value) == ("ValidationException", 400)


def test_an_operation_that_has_no_handler_is_unknown(aws: AwsBench) -> None:
    with pytest.raises(ClientError) as refused:
        aws.boto().list_training_jobs()
    assert code_of(refused.value) == ("UnknownOperationException", 404)


def test_what_nobody_foresaw_is_told_without_its_inside(aws: AwsBench, caplog: pytest.LogCaptureFixture) -> None:
    aws.handlers["ListClusters"] = failing(KeyError("the inside"))
    with pytest.raises(ClientError) as refused:
        aws.boto().list_clusters()
    assert code_of(refused.value) == ("InternalFailure", 500)
    assert "the inside" not in str(refused.value.response)
    number = refused.value.response["ResponseMetadata"]["RequestId"]
    assert [record.__dict__["request"] for record in caplog.records if record.exc_info] == [number]
    assert number in refused.value.response["Error"]["Message"]


def test_a_port_that_does_not_answer_means_try_again(aws: AwsBench) -> None:
    aws.handlers["DeleteCluster"] = failing(Retryable("the store is locked"))
    with pytest.raises(ClientError, match="the store is locked") as refused:
        aws.boto().delete_cluster(ClusterName="ml")
    assert code_of(refused.value) == ("ServiceUnavailable", 503)


def test_boto3_tries_again_by_itself(aws: AwsBench) -> None:
    failures = [Retryable("locked"), Retryable("locked")]

    def second_thoughts(caller: Caller, members: Members) -> Members:
        if failures:
            raise failures.pop()
        return list_clusters(caller, members)

    aws.handlers["ListClusters"] = second_thoughts
    assert aws.boto(retries={"total_max_attempts": 3}).list_clusters()["ClusterSummaries"]


def test_any_other_port_error_is_an_internal_failure(aws: AwsBench) -> None:
    aws.handlers["ListClusters"] = failing(Permanent("no such table"))
    with pytest.raises(ClientError) as refused:
        aws.boto().list_clusters()
    assert code_of(refused.value) == ("InternalFailure", 500)


def test_an_answer_that_the_model_does_not_know_is_an_internal_failure(aws: AwsBench) -> None:
    aws.handlers["ListClusters"] = lambda _caller, _members: {"Clusters": []}
    with pytest.raises(ClientError) as refused:
        aws.boto().list_clusters()
    assert code_of(refused.value) == ("InternalFailure", 500)


def test_our_own_client_gets_answers_and_codes(aws: AwsBench) -> None:
    assert aws.client().operate("DeleteCluster", {"ClusterName": "ml"}) == {"ClusterArn": ARN}
    assert aws.client().operate("DeleteTags", {"ResourceArn": ARN, "TagKeys": ["a"]}) == {}
    with pytest.raises(OperationError, match="ResourceNotFound: there is no cluster x") as refused:
        aws.client().operate("DeleteCluster", {"ClusterName": "x"})
    assert refused.value.code == "ResourceNotFound"


def test_an_error_is_told_in_header_and_body(aws: AwsBench) -> None:
    answer = post(aws, b"{}", {})
    assert answer.headers["x-amzn-ErrorType"] == answer.json()["__type"] == "MissingAuthenticationTokenException"
    assert answer.headers["x-amzn-RequestId"]
    assert answer.headers["Content-Type"] == "application/x-amz-json-1.1"


def test_a_body_that_is_too_long_is_refused_before_anything_else(aws: AwsBench) -> None:
    answer = post(aws, b" " * (1 << 20) + b" ", {})
    assert (answer.status_code, answer.json()["__type"]) == (413, "RequestEntityTooLargeException")


def test_a_length_that_is_too_much_is_refused_before_anything_of_the_body_comes(aws: AwsBench) -> None:
    where = urlsplit(aws.url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=FACT_S)
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"MaxResults": NaN}', b"\xff"])
def test_a_body_that_is_not_json_is_refused(aws: AwsBench, body: bytes) -> None:
    answer = post(aws, body, signed("ListClusters", body, url=aws.url))
    assert (answer.status_code, answer.json()["__type"]) == (400, "SerializationException")


def test_another_content_type_is_refused(aws: AwsBench) -> None:
    target = "SageMaker.ListClusters"
    proof = FakeMunge(aws.munged).encode(payload("POST", "/", b"{}", target))
    headers = {"Authorization": f"MUNGE {proof}", "X-Amz-Target": target, "Content-Type": "text/plain"}
    assert post(aws, b"{}", headers).json()["__type"] == "SerializationException"


def test_the_aws_command_speaks_with_it(aws: AwsBench, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": KEY.id,
        "AWS_SECRET_ACCESS_KEY": KEY.secret,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL_SAGEMAKER": aws.url,
    }
    command = Path(sys.executable).with_name("aws")

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [command, "sagemaker", *words], env=environment, capture_output=True, text=True, timeout=FACT_S, check=False
        )

    listed = run("list-clusters", "--output", "json")
    assert json.loads(listed.stdout)["ClusterSummaries"][0]["ClusterName"] == "ml", listed.stderr
    refused = run("delete-cluster", "--cluster-name", "other")
    assert refused.returncode != 0
    assert "(ResourceNotFound)" in refused.stderr
    assert "there is no cluster other" in refused.stderr
