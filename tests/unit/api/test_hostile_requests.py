"""Whatever comes to our own pages, the answer is a plain one of one line: never a failure of the head's."""

import json

import pytest
import requests

from steward.model.access import payload
from tests.builders.api_paths import changes, reads
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.munge import FakeMunge
from tests.fakes.until import FACT_S

READS = reads({"{job}": "7"})
NASTY = (
    "",
    "%00",
    "%0a",
    "..%2f..",
    "%1b[31m",
    "9" * 5000,
    "-1",
    "1e999",
    "nan",
    "%ff",
    "a" * 4000,
    "%ed%a0%80",
    "n[1-999999999999]",
)
BODIES = (
    *(
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"why": 7}',
        b'{"why": null}',
        b"[" * 60_000,
        b"\xff\xfe",
        b'{"why": "\\ud800"}',
    ),
    *(b'{"why": "' + b"x" * 60_000 + b'"}', b'{"nodes": "n[1-999999999999]"}', b'{"nodes": "n[1-60000]x[1-60000]"}'),
    *(b'{"check": "\\u001b[31m"}', b'{"kinds": ",,,,"}', b'{"nodes": "@all"}', b"x" * 70_000, b"9" * 5000),
)


def plain(answer: requests.Response) -> None:
    assert answer.status_code < 500, (answer.status_code, answer.text[:300])
    if answer.status_code >= 400 and "json" in answer.headers.get("content-type", ""):
        assert len(json.dumps(answer.json())) < 10_000


@pytest.mark.parametrize("page", READS)
def test_a_page_asked_for_with_nonsense_answers_plainly(api: ApiBench, page: str) -> None:
    api.show(a_cluster().job())
    for word in NASTY:
        plain(
            requests.get(
                f"{api.url}{page}?node={word}&after={word}&limit={word}&level={word}&kind={word}", timeout=FACT_S
            )
        )
        plain(requests.get(f"{api.url}{page}/{word}", timeout=FACT_S))
        plain(requests.get(f"{api.url}{page.replace('7', word)}", timeout=FACT_S))
        plain(requests.get(f"{api.url}{page.rpartition('/')[0]}/{word}", timeout=FACT_S))


@pytest.mark.parametrize("page", changes())
def test_a_change_with_a_body_of_nonsense_is_refused_plainly(api: ApiBench, page: str) -> None:
    api.show(a_cluster())
    for body in BODIES:
        proof = FakeMunge(api.munged).encode(payload("POST", page, body))
        plain(requests.post(api.url + page, data=body, headers={"Authorization": f"MUNGE {proof}"}, timeout=FACT_S))


@pytest.mark.parametrize("page", changes())
@pytest.mark.parametrize(
    "word", ["", "MUNGE", "MUNGE ", "MUNGE forged", "Basic eDp5", "MUNGE \xff", "AWS4-HMAC-SHA256 x"]
)
def test_a_change_without_a_good_proof_is_refused(api: ApiBench, page: str, word: str) -> None:
    answer = requests.post(
        api.url + page, data=b"{}", headers={"Authorization": word.encode("latin-1")}, timeout=FACT_S
    )
    assert answer.status_code == 403
