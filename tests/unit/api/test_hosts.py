"""A request is for this head, by a name of ours; a page that gave its own name our address reads nothing."""

import os

import pytest
import requests
from starlette.requests import Request

from steward.api.admission import own_names, path_of
from steward.head.choose import host_names
from steward.model.access import payload
from steward.model.settings.parse import parse
from tests.fakes.api_bench import ApiBench
from tests.fakes.aws_bench import signed
from tests.fakes.munge import FakeMunge
from tests.fakes.until import FACT_S

MACHINE = os.uname().nodename


def asked(api: ApiBench, host: str, path: str = "/v1/status") -> requests.Response:
    return requests.get(api.url + path, headers={"Host": host}, timeout=FACT_S)


@pytest.mark.parametrize("path", ["/v1/status", "/v1/jobs", "/metrics"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6860", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_rebound_name_reads_nothing(api: ApiBench, host: str, path: str) -> None:
    answer = asked(api, host, path)
    assert answer.status_code == 421
    assert "add it to api.host_names" in answer.json()["error"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:6860", "127.0.0.1", "[::1]:6860", "10.0.0.7:1", "localhost", "LOCALHOST:80", "localhost.", MACHINE],
)
def test_addresses_and_own_names_are_taken_whatever_the_port_of_a_tunnel(api: ApiBench, host: str) -> None:
    assert asked(api, host).status_code == 200


def test_a_request_signed_for_another_endpoint_is_not_taken(api: ApiBench) -> None:
    url = "https://api.sagemaker.us-east-1.amazonaws.com/"
    headers = signed("ListClusters", b"{}", url=url) | {"Host": "api.sagemaker.us-east-1.amazonaws.com"}
    answer = requests.post(api.url, data=b"{}", headers=headers, timeout=FACT_S)
    assert (answer.status_code, "not a name of this head" in answer.json()["message"]) == (421, True)


@pytest.mark.parametrize("after", ["/v1/resume-actions?x=", "/v1/resume-actions#"])
def test_no_host_makes_a_proof_for_one_page_good_for_another(api: ApiBench, after: str) -> None:
    proof = FakeMunge(api.munged, 0).encode(payload("POST", "/v1/resume-actions", b"{}"))
    headers = {"Host": f"127.0.0.1:6860{after}", "Authorization": f"MUNGE {proof}"}
    answer = requests.post(f"{api.url}/v1/pause", data=b"{}", headers=headers, timeout=FACT_S)
    assert answer.status_code == 403
    assert "made for another request" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:6860/v1/resume-actions?x=", "localhost:/v1/resume-actions#"])
def test_the_path_of_a_request_is_never_of_its_host(host: str) -> None:
    scope = {"type": "http", "method": "POST", "path": "/v1/pause", "headers": [(b"host", host.encode())]}
    assert path_of(Request(scope)) == "/v1/pause"


def test_the_names_of_the_settings_are_taken() -> None:
    text = '[head]\nhttp = "ctl:6860"\n[agent]\nhead = "Head1:6861"\n[api]\nhost_names = ["steward.example.org"]\n'
    text += "allow_plain_http = true\n"
    found = host_names(parse(text, source="f", env={}))
    assert {"ctl", "head1", "steward.example.org", "localhost"} <= found
    assert own_names() <= found
