"""The pages for login hosts: who proves who he is sees his jobs, those of others as Slurm shows them, and no more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
import requests
import uvicorn

from steward.adapters.slurm.config import Privacy
from steward.api.admission import CallerLimits, Rate
from steward.api.auth import Gatekeeper
from steward.api.users import UserPages, build_users
from steward.client import Client, HeadError, NotThere
from steward.model.ask import AskKind
from steward.model.ids import JobId
from steward.model.job_report import Lean, LogSign
from steward.ports import Retryable
from tests.builders.ledger import LAST
from tests.builders.picture import USER, a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.clock import FakeClock
from tests.fakes.munge import FakeMunge
from tests.fakes.serving import serving
from tests.fakes.until import FACT_S

OTHER = USER + 1
SECRET = "ValueError: token hf_abcdef"
SIGN = LogSign(sign="user.python", lean=Lean.USER, strong=True, line=SECRET, order=0)
BURST = 20


@dataclass
class UsersBench:
    """Job 7 of USER failed with a line that is known; job 8 is OTHER's."""

    api: ApiBench
    url: str = ""
    hides: bool = False

    def client(self, uid: int) -> Client:
        return Client(self.url, FakeMunge(self.api.munged, uid).encode)

    def jobs(self, uid: int) -> set[int]:
        return {job["id"] for job in self.client(uid).array("/v1/jobs")}

    def reported(self, uid: int) -> set[int]:
        return {job["job"] for job in self.client(uid).report()["jobs"]}


@pytest.fixture
def users() -> Iterator[UsersBench]:
    bench = ApiBench()
    picture = a_cluster().job(on=("n1", "n2")).opted_in().job(8, on=("n3",), user_id=OTHER)
    picture = (
        picture.opted_in(8, uid=OTHER).then().ask(AskKind.BATCH, signs=(SIGN,)).then(0.1).checked("n1", "n2", "n3")
    )
    bench.show(picture)
    assert bench.latest is not None
    bench.store.memory = bench.latest.memory
    bench.store.add_events(picture.plan().events)
    now = picture.now
    run = replace(LAST, uid=USER, opted_at=now - 100, started=now - 100, first_step=now - 90, ended=now - 1)
    runs = (run, replace(run, job=JobId(8), uid=OTHER))
    bench.store.lines |= {run.key: run for run in runs}
    made = UsersBench(bench)
    limits = CallerLimits(reads=Rate(per_s=1, burst=BURST), writes=Rate(per_s=1, burst=1), now=FakeClock().now)
    gatekeeper = Gatekeeper(FakeMunge(bench.munged), frozenset({0, 900}))
    app = build_users(UserPages(bench.source(), gatekeeper, lambda: made.hides, limits), {"localhost"})
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    with serving(server) as made.url:
        yield made


@pytest.mark.parametrize("page", ["/v1/jobs", "/v1/explain/job/7", "/v1/report", "/v1/jobs/7/history"])
def test_nothing_is_told_to_whom_nothing_proves(users: UsersBench, page: str) -> None:
    answer = requests.get(users.url + page, timeout=FACT_S)
    assert (answer.status_code, answer.headers["WWW-Authenticate"], "train" in answer.text) == (401, "MUNGE", False)
    with pytest.raises(HeadError, match="no MUNGE on this machine"):
        Client(users.url).array("/v1/jobs")


def test_a_proof_of_another_request_is_refused(users: UsersBench) -> None:
    proof = FakeMunge(users.api.munged, USER).encode(b"GET /v1/other x")
    answer = requests.get(f"{users.url}/v1/jobs", headers={"Authorization": f"MUNGE {proof}"}, timeout=FACT_S)
    assert answer.status_code == 403


def test_everybody_sees_all_jobs_where_slurm_shows_them(users: UsersBench) -> None:
    assert users.jobs(USER) == users.jobs(OTHER) == users.reported(USER) == users.reported(OTHER) == {7, 8}


def report_of(client: Client) -> Callable[[int], object]:
    return lambda job: client.report(job=job)


@pytest.mark.parametrize(("uid", "seen"), [(USER, {7}), (OTHER, {8}), (OTHER + 1, set()), (0, {7, 8}), (900, {7, 8})])
def test_where_slurm_hides_them_a_user_sees_his_own_and_an_admin_all(
    users: UsersBench, uid: int, seen: set[int]
) -> None:
    users.hides = True
    assert users.jobs(uid) == users.reported(uid) == seen
    hidden = users.client(uid)
    for job in {7, 8} - seen:
        for look in (hidden.explain_job, hidden.job_history, report_of(hidden)):
            with pytest.raises(NotThere):
                look(job)
    for job in seen:
        assert f"{job}" in hidden.explain_job(job)["lines"][0]
        assert [run["slurm_state"] for run in hidden.job_history(job)] == ["COMPLETED"]


def test_a_hidden_job_is_refused_as_one_that_is_not_there(users: UsersBench) -> None:
    users.hides = True
    texts = []
    for job in (7, 4711):
        with pytest.raises(NotThere) as refused:
            users.client(OTHER).explain_job(job)
        texts.append(str(refused.value).replace(str(job), "J"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("uid", "is_told"), [(USER, True), (OTHER, False), (0, True)])
def test_what_a_job_printed_is_its_users_and_admins(users: UsersBench, uid: int, *, is_told: bool) -> None:
    said = "\n".join(users.client(uid).explain_job(7)["lines"])
    assert (SECRET in said, "its log: user.python" in said) == (is_told, True)


def test_slurms_word_on_whose_a_job_is_counts_before_that_of_who_calls_it_his(users: UsersBench) -> None:
    users.hides = True
    users.api.show(a_cluster().job(8, user_id=OTHER).opted_in(8, uid=USER).then())
    assert 8 not in users.jobs(USER)
    with pytest.raises(NotThere):
        users.client(USER).explain_job(8)


@pytest.mark.parametrize(
    "page", ["/v1/status", "/v1/nodes", "/v1/explain/node/n1", "/v1/plan", "/metrics", "/", "/job/7"]
)
def test_no_other_page_is_served(users: UsersBench, page: str) -> None:
    answer = requests.get(users.url + page, timeout=FACT_S)
    assert (answer.status_code, "run this on the controller" in answer.text) == (404, True)


@pytest.mark.parametrize("page", ["/v1/pause", "/v1/jobs", "/"])
def test_nothing_can_be_changed_here_by_anybody(users: UsersBench, page: str) -> None:
    proof = FakeMunge(users.api.munged, 0).encode(b"x")
    answer = requests.post(users.url + page, headers={"Authorization": f"MUNGE {proof}"}, data="{}", timeout=FACT_S)
    assert answer.status_code in (404, 405)
    assert users.api.latest is not None
    assert not users.api.latest.memory.paused


def test_who_asks_too_often_is_told_so_and_others_are_not(users: UsersBench) -> None:
    for _ in range(BURST):
        users.jobs(USER)
    with pytest.raises(HeadError, match="Rate exceeded"):
        users.jobs(USER)
    assert users.jobs(OTHER)


def test_a_request_by_another_name_is_refused(users: UsersBench) -> None:
    assert requests.get(f"{users.url}/v1/jobs", headers={"Host": "evil.example"}, timeout=FACT_S).status_code == 421


def failing() -> dict[str, str]:
    raise Retryable("slurmctld does not answer")


@pytest.mark.parametrize(
    ("config", "hidden"),
    [
        (lambda: {"PrivateData": "none"}, False),
        (lambda: {"PrivateData": "nodes,accounts"}, False),
        (lambda: {"PrivateData": "accounts,jobs"}, True),
        (lambda: {}, True),
        (failing, True),
    ],
)
def test_jobs_are_hidden_where_slurm_says_so_or_says_nothing(
    config: Callable[[], dict[str, str]], *, hidden: bool
) -> None:
    assert Privacy(config, FakeClock().now).hides_jobs() is hidden


def test_slurms_last_word_holds_for_a_minute_and_while_it_is_silent() -> None:
    clock, said = FakeClock(), [{"PrivateData": "none"}, {"PrivateData": "jobs"}]

    def config() -> dict[str, str]:
        if not said:
            raise Retryable("slurmctld does not answer")
        return said.pop(0)

    privacy = Privacy(config, clock.now)
    assert [privacy.hides_jobs(), privacy.hides_jobs()] == [False, False]
    clock.at += 61
    assert privacy.hides_jobs()
    clock.at += 61
    assert privacy.hides_jobs()


def test_a_slurm_that_gave_no_answer_is_asked_again_soon() -> None:
    clock, answers = FakeClock(), [None, None, {"PrivateData": "none"}]

    def config() -> dict[str, str]:
        if (said := answers.pop(0)) is None:
            raise Retryable("slurmctld does not answer")
        return said

    privacy = Privacy(config, clock.now)
    hidden = []
    for _ in range(4):
        hidden.append(privacy.hides_jobs())
        clock.at += 3.0
    assert (hidden, len(answers)) == ([True, True, True, True], 1)
    assert not privacy.hides_jobs()
