"""The table of routes is what the head serves, and docs/api.md what the table says."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import requests
from starlette.routing import Route

from steward.api.routes import OPENAPI, ROUTES, ApiRoute, document, listed
from tests.builders.api_paths import reads
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.munge import FakeMunge

PAGE = Path(__file__).resolve().parents[3] / "docs/api.md"
_EXAMPLE = re.compile(r"^```sh api\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READS = list(zip((one for one in ROUTES if one.method == "GET"), reads(), strict=True))
_PAUSE = b'{"why": "maintenance"}'


def test_each_route_that_is_served_is_in_the_table_and_the_other_way_round(api: ApiBench) -> None:
    assert api.app is not None
    served = {
        (method, route.path)
        for route in api.app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if route.path.startswith(("/v1/", "/metrics")) and method != "HEAD"
    }
    assert served == {(one.method, one.path) for one in ROUTES}


def test_the_page_has_the_list_that_the_table_makes() -> None:
    assert f"<!-- made by: python -m steward.api.routes -->\n{listed()}<!-- end -->" in PAGE.read_text()


@pytest.mark.parametrize(("one", "path"), READS, ids=reads())
def test_an_answer_is_of_the_kind_that_the_document_says(api: ApiBench, one: ApiRoute, path: str) -> None:
    api.show(a_cluster().job().opted_in().lost("n2"))
    answer = requests.get(api.url + path, timeout=10)
    if answer.status_code == 404:  # there is no such group, quota or deep check here
        assert "{" in one.path
        assert list(answer.json()) == ["error"]
    elif one.answer:
        assert isinstance(answer.json(), {"object": dict, "array": list}[one.answer])
    else:
        assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("one", [one for one in ROUTES if one.method == "POST"], ids=lambda one: one.path)
def test_a_change_needs_the_proof_that_the_document_asks_for(api: ApiBench, one: ApiRoute) -> None:
    api.show(a_cluster())
    assert requests.post(api.url + one.path, json={}, timeout=10).status_code in (401, 403)
    assert document("1")["paths"][one.path]["post"]["security"]


def test_the_document_is_served_and_names_each_operation_once(api: ApiBench) -> None:
    found = requests.get(api.url + OPENAPI, timeout=10).json()
    assert found == document("1.2.3")
    ids = [operation["operationId"] for methods in found["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids)) == len(ROUTES)
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found)):
        assert name in found["components"]["schemas"]


@pytest.mark.parametrize("text", _EXAMPLE.findall(PAGE.read_text()), ids=lambda text: text.splitlines()[0][:30])
def test_the_examples_of_the_page_work(api: ApiBench, text: str, tmp_path: Path) -> None:
    """With a munge that makes the only credential that this head takes."""
    api.show(a_cluster().lost("n2"))
    payload = f"POST /v1/pause {hashlib.sha256(_PAUSE).hexdigest()}"
    credential = FakeMunge(api.munged).encode(payload.encode())
    munge = tmp_path / "munge"
    munge.write_text(f'#!/bin/sh\n[ "$(cat)" = "{payload}" ] && echo {credential}\n')
    munge.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euc", text.replace("http://127.0.0.1:6860", api.url)],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.startswith(("{", "["))
    assert '"error"' not in done.stdout
