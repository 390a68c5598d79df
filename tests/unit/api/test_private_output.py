"""What a job printed is told to its user and to admins; all others are told the name of the sign that was found."""

import json

import pytest
import requests

from steward.client import Client
from steward.model.ask import AskKind
from steward.model.job_report import Lean, LogSign
from tests.builders.api_paths import reads
from tests.builders.picture import USER, a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.munge import FakeMunge
from tests.fakes.until import FACT_S

SECRET = "ValueError: token hf_abcdef of patient 4711"
SIGN = LogSign(sign="user.python", lean=Lean.USER, strong=True, line=SECRET, order=0)


@pytest.fixture
def failed(api: ApiBench) -> ApiBench:
    """Job 7 failed with a line that is known, and was stopped."""
    picture = a_cluster().job().opted_in().then().ask(AskKind.BATCH, signs=(SIGN,)).then(0.1)
    api.show(picture.checked("n1", "n2", "n3"))
    assert api.latest is not None
    api.store.memory = api.latest.memory
    api.store.add_events(picture.checked("n1", "n2", "n3").plan().events)
    return api


def explained(client: Client) -> str:
    return "\n".join(client.explain_job(7)["lines"])


def test_no_page_for_all_has_the_line(failed: ApiBench) -> None:
    texts = {page: requests.get(failed.url + page, timeout=FACT_S).text for page in reads()}
    assert [page for page, text in texts.items() if SECRET in json.dumps(text)] == []
    assert "its log: user.python" in texts["/v1/explain/job/7"]
    assert "its log: user.python" in texts["/v1/events"]


@pytest.mark.parametrize(("uid", "is_told"), [(USER, True), (0, True), (900, True), (USER + 1, False)])
def test_its_user_and_admins_are_told_the_line(failed: ApiBench, uid: int, *, is_told: bool) -> None:
    assert (SECRET in explained(failed.client(uid))) is is_told


@pytest.mark.parametrize("word", ["7.batch", "7_[0-3%2]"])
def test_its_user_is_told_the_line_whatever_name_of_the_job_was_given(failed: ApiBench, word: str) -> None:
    assert SECRET in "\n".join(failed.client(USER).explain_job(word)["lines"])


def test_who_does_not_prove_who_he_is_is_told_how_to_get_it(failed: ApiBench) -> None:
    text = explained(Client(failed.url))
    assert SECRET not in text
    assert "run `steward explain` as one of them" in text


@pytest.mark.parametrize("munged_is_up", [True, False])
def test_with_a_proof_that_is_not_good_or_cannot_be_looked_at_he_reads_what_all_may(
    failed: ApiBench, *, munged_is_up: bool
) -> None:
    proof = FakeMunge(failed.munged, USER).encode(b"of another request")
    failed.munged.up = munged_is_up
    answer = requests.get(f"{failed.url}/v1/explain/job/7", headers={"Authorization": f"MUNGE {proof}"}, timeout=FACT_S)
    assert (answer.status_code, SECRET in answer.text, "its log: user.python" in answer.text) == (200, False, True)
