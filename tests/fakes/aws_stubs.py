"""Three operations for tests that are about the way to them."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from steward.api.json11.errors import not_found
from steward.api.operations.sight import Handler
from steward.model.access import Caller

ARN = "arn:aws:sagemaker:steward-1:000000000000:cluster/abcdefghij12"
SUMMARY = {"ClusterArn": ARN, "ClusterName": "ml", "CreationTime": 1700000000.5, "ClusterStatus": "InService"}
Members = Mapping[str, Any]


def list_clusters(_caller: Caller, _members: Members) -> Members:
    return {"ClusterSummaries": [SUMMARY]}


def delete_cluster(_caller: Caller, members: Members) -> Members:
    if members["ClusterName"] != "ml":
        raise not_found(f"there is no cluster {members['ClusterName']}")
    return {"ClusterArn": ARN}


def delete_tags(_caller: Caller, _members: Members) -> Members:
    return {}


HANDLERS: dict[str, Handler] = {
    "ListClusters": list_clusters,
    "DeleteCluster": delete_cluster,
    "DeleteTags": delete_tags,
}


def failing(error: Exception) -> Handler:
    def handler(_caller: Caller, _members: Members) -> Members:
        raise error

    return handler


def code_of(error: ClientError) -> tuple[str, int]:
    """The code and the HTTP status."""
    return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
