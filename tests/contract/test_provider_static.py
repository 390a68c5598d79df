"""The static provider keeps what every provider promises, and its own word: lent spares, reboots by command."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steward.adapters.providers.static import StaticProvider
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState, Slot
from steward.model.settings.providers import StaticProviderSettings as Settings
from steward.ports import Permanent, Retryable
from tests.contract.provider import ProviderContract
from tests.fakes.until import FACT_S, LIMITS_S

SPARE = Slot(node=NodeName("s1"), group="main", fixed=True, instead_of=NodeName("n1"))
N1 = InstanceId("static-n1")
Make = Callable[..., StaticProvider]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A provider as a head that was just started makes it; `work` is Python that the reboot runs, with argv[1]."""

    def made(work: str = "", status: str = "", timeout_s: float = FACT_S) -> StaticProvider:
        note = f"import sys,time; open({str(tmp_path / 'reboots')!r},'a').write(sys.argv[1]+'\\n'); "
        settings = Settings(
            spares="s1",
            reboot=(sys.executable, "-c", note + work, "%n"),
            reboot_timeout_s=timeout_s,
            status=(sys.executable, "-c", f"import sys; {status}", "%n") if status else (),
        )
        return StaticProvider(settings, [NodeName(name) for name in ("n1", "n2", "s1")], tmp_path / "s" / "static.json")

    return made


@pytest.fixture
def provider(make: Make) -> StaticProvider:
    return make()


def rebooted(tmp_path: Path) -> list[str]:
    notes = tmp_path / "reboots"
    return notes.read_text().split() if notes.exists() else []


class TestStaticProvider(ProviderContract):
    """The contract of all providers."""


def test_every_machine_is_listed_whether_lent_or_not(provider: StaticProvider) -> None:
    lent = provider.launch(SPARE, "c1-0")
    assert {i.node: (i.id, i.token, i.instead_of) for i in provider.instances().values()} == {
        "n1": (N1, "", None),
        "n2": ("static-n2", "", None),
        "s1": (lent.id, "c1-0", "n1"),
    }


def test_a_spare_is_lent_once_at_a_time(provider: StaticProvider) -> None:
    lent = provider.launch(SPARE, "c1-0")
    with pytest.raises(Retryable, match=r"^capacity: s1 already serves in place of n1"):
        provider.launch(SPARE, "c2-0")
    provider.terminate(lent.id)
    assert provider.launch(SPARE, "c2-0").id != lent.id


def test_loans_outlive_the_head(provider: StaticProvider, make: Make) -> None:
    lent = provider.launch(SPARE, "c1-0")
    assert make().launch(SPARE, "c1-0") == lent
    assert lent.id in make().instances()


def test_a_machine_of_nobody_cannot_be_lent(provider: StaticProvider) -> None:
    with pytest.raises(Permanent, match="no static group"):
        provider.launch(Slot(node=NodeName("x9"), group="main"), "t1")


def test_a_fixed_machine_cannot_be_ended(provider: StaticProvider) -> None:
    with pytest.raises(Permanent, match="fixed machine"):
        provider.terminate(N1)


def test_a_reboot_runs_the_command_for_the_node_once_for_a_token(make: Make, tmp_path: Path) -> None:
    make().reboot(N1, "r1")
    make().reboot(N1, "r1")
    assert rebooted(tmp_path) == ["n1"]
    make().reboot(N1, "r2")
    assert rebooted(tmp_path) == ["n1", "n1"]


def test_a_lent_spare_is_rebooted_under_the_id_of_its_loan(provider: StaticProvider, tmp_path: Path) -> None:
    provider.reboot(provider.launch(SPARE, "c1-0").id, "r1")
    assert rebooted(tmp_path) == ["s1"]


def test_a_command_that_refuses_is_tried_again(make: Make, tmp_path: Path) -> None:
    with pytest.raises(Retryable, match=r"n1 was not rebooted: .*no power"):
        make("sys.exit('no power')").reboot(N1, "r1")
    make().reboot(N1, "r1")
    assert rebooted(tmp_path) == ["n1", "n1"]


def test_a_command_that_takes_too_long_may_have_done_it_and_is_not_repeated(make: Make, tmp_path: Path) -> None:
    for limit_s in LIMITS_S:
        with pytest.raises(Retryable, match="no end within"):
            make("time.sleep(1000)", timeout_s=limit_s).reboot(N1, f"within-{limit_s:g}")
        if rebooted(tmp_path):
            break
    make().reboot(N1, f"within-{limit_s:g}")
    assert rebooted(tmp_path) == ["n1"]


def test_a_reboot_noted_by_a_head_that_died_is_not_repeated(make: Make, tmp_path: Path) -> None:
    """What kill -9 while the command runs leaves behind: the command here sees the note of itself already."""
    state = tmp_path / "s" / "static.json"
    make(f"open({str(tmp_path / 'seen')!r},'w').write(open({str(state)!r}).read())").reboot(N1, "r1")
    assert '"r1"' in (tmp_path / "seen").read_text()
    state.write_text((tmp_path / "seen").read_text())
    make().reboot(N1, "r1")
    assert rebooted(tmp_path) == ["n1"]


def test_without_a_command_a_reboot_names_the_setting(tmp_path: Path) -> None:
    bare = StaticProvider(Settings(), [NodeName("n1")], tmp_path / "static.json")
    with pytest.raises(Permanent, match=r"provider\.static\.reboot"):
        bare.reboot(N1, "r1")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("sys.exit(sys.argv[1] != 'n1')", InstanceState.RUNNING),
        ("sys.exit(sys.argv[1] == 'n1')", InstanceState.STOPPED),
    ],
)
def test_the_status_command_tells_whether_a_machine_is_on(make: Make, status: str, state: InstanceState) -> None:
    assert make(status=status).instances()[N1].state is state


def test_a_status_command_that_cannot_be_run_says_nothing_about_the_machine(tmp_path: Path) -> None:
    settings = Settings(status=("/no/such/program", "%n"))
    listed = StaticProvider(settings, [NodeName("n1")], tmp_path / "static.json").instances()
    assert [i.state for i in listed.values()] == [InstanceState.UNKNOWN]


def test_a_damaged_state_file_is_an_error_and_not_an_empty_one(provider: StaticProvider, tmp_path: Path) -> None:
    provider.launch(SPARE, "c1-0")
    (tmp_path / "s" / "static.json").write_text("{")
    with pytest.raises(Retryable, match="damaged"):
        provider.instances()


def test_it_says_which_machines_and_command_it_has(provider: StaticProvider) -> None:
    assert provider.describe() == f"static: 3 machines, spares s1, reboot by {sys.executable}"
