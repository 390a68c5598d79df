"""The AWS endpoint with handlers of the test's choice, and real clients for it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import requests
import uvicorn
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from starlette.applications import Starlette
from starlette.routing import Route

from steward.api.admission import CallerLimits, Rate, Replays
from steward.api.auth import Gatekeeper
from steward.api.identify import Authenticator, Sigv4
from steward.api.json11.errors import not_found
from steward.api.json11.route import Audit, Json11
from steward.api.json11.service import Service, load
from steward.api.late import Endpoint
from steward.api.operations.sight import Handler
from steward.client import Client
from steward.model.access import AccessKey, Caller
from steward.model.events import Event
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.serving import serving
from tests.fakes.store import FakeStore
from tests.fakes.until import FACT_S

REGION = "steward-1"
KEY = AccessKey(id="AKIDPLATFORM", secret="a secret of the platform team", user="platform")
READER = AccessKey(id="AKIDREADER", secret="a secret of the dashboard one", user="dashboard", read_only=True)
SERVICE: Service = load()
OFTEN = Rate(per_s=1e6, burst=1_000_000)


@dataclass
class ShiftedClock:
    """The real clock, wrong by `by` seconds."""

    by: float = 0.0

    def now(self) -> float:
        return datetime.now(UTC).timestamp() + self.by


@dataclass
class AwsBench:
    """`handlers` may be changed while it serves. The clock is the real one unless the test shifts it."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    munged: FakeMunged = field(default_factory=FakeMunged)
    keys: dict[str, AccessKey] = field(default_factory=lambda: {key.id: key for key in (KEY, READER)})
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    store: FakeStore = field(default_factory=FakeStore)
    reads: Rate = OFTEN
    writes: Rate = OFTEN
    url: str = ""

    def endpoint(self) -> Json11:
        gatekeeper = Gatekeeper(FakeMunge(self.munged), frozenset({0, 900}))
        signatures = Sigv4(key_of=self.keys.get, region=REGION, skew_s=300, now=self.clock.now)
        return Json11(
            service=SERVICE,
            door=Authenticator(gatekeeper, signatures),
            limits=CallerLimits(reads=self.reads, writes=self.writes, now=self.clock.now),
            replays=Replays(skew_s=300, now=self.clock.now, first_use=self.store.first_use),
            audit=Audit(tell=self.events.append, now=self.clock.now),
            handlers=self.handlers,
            max_body_bytes=1 << 20,
        )

    def boto(self, key: AccessKey = KEY, **more: Any) -> Any:
        """A boto3 client that checks nothing itself and tries once, unless told otherwise."""
        options = {"parameter_validation": False, "retries": {"total_max_attempts": 1}} | more
        return boto3.client(
            "sagemaker",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=key.id,
            aws_secret_access_key=key.secret,
            config=Config(**options),
        )

    def client(self, uid: int = 0) -> Client:
        return Client(self.url, FakeMunge(self.munged, uid).encode)


def signed(
    operation: str, body: bytes, key: AccessKey = KEY, url: str = "http://head1:6860/", **more: str
) -> dict[str, str]:
    """The headers of a request as botocore signs it now, `more` among them."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"SageMaker.{operation}", **more}
    request = AWSRequest(method="POST", url=url, data=body, headers=headers)
    SigV4Auth(Credentials(key.id, key.secret), "sagemaker", REGION).add_auth(request)
    return dict(request.headers.items())


@contextmanager
def an_aws_endpoint(handlers: Mapping[str, Handler] | None = None, **more: Any) -> Iterator[AwsBench]:
    bench = AwsBench(handlers=dict(handlers or {}), **more)
    with reached_at(bench, bench.endpoint()):
        yield bench


@contextmanager
def reached_at(bench: AwsBench, endpoint: Endpoint) -> Iterator[None]:
    """The bench's clients speak with this endpoint."""
    app = Starlette(routes=[Route("/", endpoint.serve, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    with serving(server) as bench.url:
        yield


def post(aws: AwsBench, body: bytes, headers: dict[str, str]) -> requests.Response:
    """To the endpoint, as it is."""
    return requests.post(
        aws.url, data=body, headers={"Content-Type": "application/x-amz-json-1.1"} | headers, timeout=FACT_S
    )


# Three operations for tests that are about the way to them.


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
