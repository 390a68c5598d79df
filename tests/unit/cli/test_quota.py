"""`steward quota` against a served API whose orders are carried out at once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import Result

from steward.cli.quota import quota, wait_for_quotas
from steward.client import Client, HeadError, Unreachable
from steward.model.memory import Memory
from steward.model.quota import QuotaStatus
from tests.builders.cli import Run, as_root
from tests.builders.picture import Picture
from tests.builders.quota import TYPES, own, runs, teams, waits
from tests.builders.want import but
from tests.fakes.api_bench import ApiBench, an_api

NL = "\n"
ID = "0123456789ab"

VISION = """
[ClusterSchedulerConfig.SchedulerConfig]
FairShare = "Enabled"
IdleResourceSharing = "Enabled"
PriorityClasses = [{ Name = "inference", Weight = 90 }]

[[ComputeQuotas]]
ComputeQuotaTarget = { TeamName = "vision", FairShareWeight = 10 }
[ComputeQuotas.ComputeQuotaConfig]
ComputeQuotaResources = [{ InstanceType = "ml.g6.12xlarge", Accelerators = 2 }]
ResourceSharingConfig = { Strategy = "LendAndBorrow", BorrowLimit = 10 }
"""


@pytest.fixture
def api() -> Iterator[ApiBench]:
    """The head knows the machine types of the pictures."""
    bench = ApiBench()
    bench.want = replace(bench.want, capacity=but(bench.want.capacity, types=TYPES))
    with an_api(bench) as served:
        yield served


@pytest.fixture
def run(api: ApiBench) -> Run:
    """Runs `steward quota`, or another `command`, as root."""
    root = as_root(api)

    def invoke(*words: str, answer: str = "", command: click.Command = quota) -> Result:
        return root(command, *words, answer=answer)

    return invoke


def memory(api: ApiBench) -> Memory:
    assert api.latest is not None
    return api.latest.memory


def shared() -> Picture:
    """a has borrowed two GPUs that b lends."""
    fields: dict[str, Any] = {"status": QuotaStatus.CREATED, "borrow_absolute": ()}
    quotas = [own("a", 4, id=ID, **fields), own("b", 4, **fields)]
    return waits(runs(runs(teams(*quotas), 1, "a", 4), 2, "a", 2, "b", "n2"), 3, "a", 1)


def lines(found: Result) -> list[list[str]]:
    assert found.exit_code == 0, found.output
    return [text.split() for text in found.output.splitlines()]


def test_the_list_has_a_line_for_each_team_and_resource_that_fits_a_terminal(api: ApiBench, run: Run) -> None:
    api.show(shared())
    found = run("list")
    assert lines(found) == [
        ["TEAM", "RESOURCE", "NOMINAL", "IN-USE", "LENT", "BORROWED", "SHARE"],
        ["a", "ml.g6.12xlarge/gpu", "4", "6", "0", "2", "0.025"],
        ["b", "ml.g6.12xlarge/gpu", "4", "0", "2", "0", "0"],
    ]
    assert max(map(len, found.output.splitlines())) <= 80
    everything = run("list", "--all").output
    assert "ml.g6.12xlarge/mem  192G" in everything
    document = json.loads(run("list", "--json").output)
    assert document["teams"][0]["resources"][0] == {
        "resource": "ml.g6.12xlarge/gpu", "counted": True, "nominal": 4, "in_use": 6, "lent": 0, "borrowed": 2,
        "may_borrow": 2, "share": 0.025,
    }  # fmt: skip


def test_without_quotas_the_list_says_how_to_make_some(run: Run) -> None:
    assert "steward quota apply FILE" in run("list").output


def test_a_team_is_shown_with_what_its_jobs_wait_for(api: ApiBench, run: Run) -> None:
    api.show(shared())
    text = run("show", "a").output
    assert text.startswith(f"a: quota a (id {ID}, version 1): Created")
    assert "LendAndBorrow, borrows up to 50 %, weight 10" in text
    assert "the team has reached its limit (6 GPUs of ml.g6.12xlarge)" in text
    found = run("show", "nobody")
    assert (found.exit_code, "team nobody has no quota" in found.output) == (1, True)


def test_a_file_shows_its_difference_with_what_is_filled_in_and_is_applied(
    api: ApiBench, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(VISION)
    text = run("apply", str(file), answer="n" + NL).output
    assert memory(api).quotas == {}
    assert "+ quota vision of team vision" in text
    assert (
        "owns 2 GPUs of ml.g6.12xlarge; filled in, and not a limit: 24 CPUs of ml.g6.12xlarge, 96 GiB of ml.g6.12xlarge"
    ) in text
    assert "warning: 10 % of 2 ml.g6.12xlarge/gpu is 0: vision can never borrow it" in text
    assert "warning: the quotas are 2 GPUs of ml.g6.12xlarge in all, but the cluster has 0 GPUs" in text
    assert "+ scheduler configuration scheduler: priority classes inference 90; fair share" in text

    assert run("apply", str(file), "--yes", "--no-wait").exit_code == 0
    (made,) = memory(api).quotas.values()
    assert (made.name, made.team, made.weight, made.borrow_percent) == ("vision", "vision", 10, 10)
    assert "No change." in run("apply", str(file)).output


def test_a_changed_file_shows_only_what_changes_and_prune_deletes(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show(teams(own("old", 4)))
    file = tmp_path / "quotas.toml"
    file.write_text(VISION)
    run("apply", str(file), "--yes", "--no-wait")
    file.write_text(VISION.replace("Accelerators = 2", "Accelerators = 3").replace("Weight = 10", "Weight = 20"))
    text = run("apply", str(file), "--prune", "--yes", "--no-wait").output
    assert "~ quota vision of team vision" in text
    assert "weight 10 -> weight 20" in text
    assert "Strategy" not in text
    assert "- quota old of team old" in text
    quotas = {each.team: each for each in memory(api).quotas.values()}
    assert quotas["old"].status is QuotaStatus.DELETING
    assert quotas["vision"].version == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[ComputeQuotas]\n", "Expected ']]'"),
        ("Quotas = 1\n", "'Quotas' is not known at the top"),
        ("ComputeQuotas = 1\n", "ComputeQuotas is not a list"),
        (VISION.replace('"vision"', '"root"'), "it is an account of Slurm's own"),
        (VISION.replace('"vision"', '"-rf"'), "at 'computeQuotaTarget.teamName' failed to satisfy constraint"),
        (VISION.replace("Accelerators", "Gpus"), "Member is not known"),
        (VISION.replace("12xlarge", "13xlarge"), "this machine type is not known"),
        (VISION.replace("BorrowLimit = 10", "BorrowLimit = 20000"), "less than or equal to 10000"),
        (VISION + '[[ComputeQuotas]]\nName = "vision"\n', "ComputeQuotas.2: "),
        (VISION.replace("[[ComputeQuotas]]", '[[ComputeQuotas]]\nClusterArn = "x"'), "leave ClusterArn out"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(run: Run, tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(text)
    found = run("apply", str(file), "--yes")
    assert found.exit_code == 1
    assert why in found.output
    assert len(found.output.splitlines()) == 1


def test_a_file_of_another_kind_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text("a: 1")
    assert "its name must end with .toml or .json" in run("apply", str(file)).output


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(api: ApiBench, run: Run) -> None:
    document = {"ComputeQuotas": [{"ComputeQuotaTarget": {"TeamName": "a"}, "ComputeQuotaConfig": {}}]}
    client = api.client()
    seen = client.preview_quotas(document, prune=False)["based_on"]
    client.apply_quotas(document, prune=False, based_on=seen)
    with pytest.raises(Exception, match="The quotas changed since this was shown"):
        client.apply_quotas(document, prune=False, based_on=seen)


def test_only_admins_change_quotas(api: ApiBench) -> None:
    with pytest.raises(Exception, match="may not do this"):
        api.client(uid=1000).preview_quotas({}, prune=False)


def test_a_quota_is_deleted_after_a_question_that_names_its_jobs(api: ApiBench, run: Run) -> None:
    api.show(shared())
    found = run("delete", "a", answer="n" + NL)
    assert "2 running and 1 waiting jobs, which stay" in found.output
    assert memory(api).quotas[ID].status is not QuotaStatus.DELETING
    assert run("delete", "a", "--yes", "--no-wait").exit_code == 0
    assert memory(api).quotas[ID].status is QuotaStatus.DELETING


def test_a_quota_that_cannot_be_in_force_is_told_after_it_was_applied(api: ApiBench, run: Run, tmp_path: Path) -> None:
    picture = teams(own("b", 4))
    assert picture.seen.accounting is not None
    api.show(picture.see(accounting=replace(picture.seen.accounting, accounts={})))
    file = tmp_path / "quotas.toml"
    file.write_text(VISION)
    found = run("apply", str(file), "--yes")
    assert (found.exit_code, "b: Slurm has no account b: `steward quota setup --apply` makes it" in found.output) == (
        1,
        True,
    )


class Answers:
    """A head that answers these, one after the other."""

    def __init__(self, *answers: list[dict[str, Any]] | HeadError) -> None:
        self._answers = list(answers)

    def object(self, path: str) -> dict[str, Any]:
        answer = self._answers.pop(0)
        if isinstance(answer, HeadError):
            raise answer
        return {"teams": answer}


def a_team(id: str, status: str, failure: str = "", *, enabled: bool = True) -> dict[str, Any]:
    return {"id": id, "team": f"team-{id}", "status": status, "failure": failure, "enabled": enabled}


AWAY = Unreachable("the head restarts")
WAITS = "it waits for job 7, which still runs in its QOS"


@pytest.mark.parametrize(
    ("answers", "of", "said"),
    [
        ([AWAY, [a_team("a", "Created")]], "", "In force.\n"),
        ([[a_team("a", "Deleting")], []], "a", "Gone.\n"),
        ([[a_team("a", "Deleting", WAITS)]], "a", f"team-a: {WAITS}; `steward quota list` shows when it is gone.\n"),
        ([[a_team("a", "Created"), a_team("b", "Updated", WAITS, enabled=False)]], "", "In force.\n"),
        ([[a_team("b", "CreateFailed", "no account b")]], "a", "Gone.\n"),
    ],
    ids=["the head restarts", "it goes", "its jobs go on", "another one is disabled", "another one cannot be"],
)
def test_the_end_of_a_change_is_told(
    answers: list[Any], of: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_for_quotas(cast("Client", Answers(*answers)), of)
    assert capsys.readouterr().out == said


def test_a_job_is_explained_as_steward_explain_does(api: ApiBench, run: Run) -> None:
    api.show(shared())
    assert "short of 1 GPU of ml.g6.12xlarge" in run("explain", "3").output
