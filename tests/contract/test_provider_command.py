"""The command provider on the program that docs/providers.md shows, and on programs that do not keep the contract."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.providers.command import LIST_TIMEOUT_S, CommandProvider
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState, Slot
from steward.model.settings.clouds import CommandProviderSettings as Settings
from steward.ports import Permanent, Retryable
from tests.contract.provider import OTHER, SLOT, ProviderContract, launched
from tests.fakes.until import LIMITS_S

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "command-provider.py"
ASK = "import json,sys,time,os; asked = json.load(sys.stdin); "
MACHINE = {"id": "vm-1", "node": "n1", "state": "running", "token": "t1"}
Make = Callable[..., CommandProvider]


def example(store: Path, list_timeout_s: float = LIST_TIMEOUT_S, **more: Any) -> CommandProvider:
    """As a head that was just started makes it."""
    argv = {
        name: (sys.executable, str(EXAMPLE), str(store), name) for name in ("launch", "terminate", "reboot", "list")
    }
    return CommandProvider(Settings(**{**argv, **more}), list_timeout_s)


def program(work: str) -> tuple[str, ...]:
    return (sys.executable, "-c", ASK + work)


def says(answer: Any) -> tuple[str, ...]:
    return program(f"print({json.dumps(answer)!r})")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "machines"


@pytest.fixture
def provider(store: Path) -> CommandProvider:
    return example(store)


class TestCommandProvider(ProviderContract):
    """The contract of all providers, kept by the example."""


def test_the_command_is_told_everything_of_the_slot(store: Path, tmp_path: Path) -> None:
    note = tmp_path / "asked"
    work = f"open({str(note)!r},'w').write(json.dumps(asked)); print(json.dumps({{'instance': {MACHINE!r}}}))"
    slot = Slot(
        node=NodeName("n1"),
        group="main",
        types=("big", "small"),
        image="img",
        release="7",
        features=frozenset({"b", "a"}),
    )
    example(store, launch=program(work)).launch(slot, "t1")
    assert json.loads(note.read_text()) == {
        "version": 1,
        "action": "launch",
        "token": "t1",
        "slot": {
            "node": "n1",
            "group": "main",
            "role": "Compute",
            "types": ["big", "small"],
            "image": "img",
            "release": "7",
            "features": ["a", "b"],
        },
    }


def test_a_killed_launch_that_made_its_machine_makes_no_second_one(store: Path) -> None:
    """The command here does not look for the token itself: the list tells."""
    machine = json.dumps(MACHINE)
    count = store.parent / "made"
    work = f"os.makedirs({str(store)!r},exist_ok=True); open({str(store / 'vm-1.json')!r},'w').write({machine!r}); "
    work += f"open({str(count)!r},'a').write('x'); time.sleep(1000)"
    for limit_s in LIMITS_S:
        provider = example(store, launch=program(work), timeout_s=limit_s)
        provider.instances()
        with pytest.raises(Retryable, match=f"no end within {limit_s:g} s"):
            provider.launch(SLOT, "t1")
        if count.exists():
            break
    assert provider.launch(SLOT, "t1").id == "vm-1"
    assert example(store, launch=program(work)).launch(SLOT, "t1").id == "vm-1"
    assert count.read_text() == "x"


def test_without_capacity_a_launch_says_so_and_a_known_token_is_not_refused(store: Path) -> None:
    provider = example(store)
    made = provider.launch(SLOT, "t1")
    (store / "capacity").write_text("1")
    with pytest.raises(Retryable, match=r"^capacity: .*1 machines are all there are"):
        provider.launch(OTHER, "t2")
    assert example(store).launch(SLOT, "t1").id == made.id
    assert launched(provider) == [made.id]


@pytest.mark.parametrize("status", [0, 1, 75])
@pytest.mark.parametrize(
    ("word", "kind", "begins"),
    [
        ("capacity", Retryable, "capacity: "),
        ("quota", Retryable, "quota: "),
        ("retry", Retryable, "`"),
        ("permanent", Permanent, "`"),
    ],
)
def test_the_commands_own_word_counts_whatever_its_status(
    store: Path, status: int, word: str, kind: type[Exception], begins: str
) -> None:
    answer = json.dumps({"error": word, "text": "because\nso"})
    provider = example(store, launch=program(f"print({answer!r}); sys.exit({status})"))
    with pytest.raises(kind, match=r"because so$") as refused:
        provider.launch(SLOT, "t1")
    assert str(refused.value).startswith(begins)


@pytest.mark.parametrize(
    ("end", "kind", "told"),
    [
        ("sys.exit(75)", Retryable, r"cloud is tired \(status 75\)$"),
        ("sys.exit(1)", Permanent, r"cloud is tired \(status 1\)$"),
        ("os.kill(os.getpid(), 9)", Retryable, r"cloud is tired \(killed by signal 9\)$"),
    ],
)
def test_a_status_tells_whether_to_try_again_and_the_last_line_of_stderr_why(
    store: Path, end: str, kind: type[Exception], told: str
) -> None:
    work = f"print('hello\\ncloud is tired', file=sys.stderr, flush=True); {end}"
    with pytest.raises(kind, match=told):
        example(store, terminate=program(work)).terminate(InstanceId("vm-1"))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("", "printed nothing"),
        ("{", "Invalid JSON"),
        ("[]", "answer: "),
        (json.dumps({"instance": {**MACHINE, "node": "n1; rm -rf"}}), r"instance\.node: "),
        (json.dumps({"instance": {**MACHINE, "node": "n2"}}), "asked for n1 with 't1', answered node 'n2'"),
        (json.dumps({"instance": {**MACHINE, "token": "t0"}}), "answered node 'n1' and token 't0'"),
        (json.dumps({"instance": {"node": "n1", "state": "running"}}), r"instance\.id: Field required"),
    ],
)
def test_an_answer_that_cannot_be_used_is_told_in_one_line_and_asked_for_again(
    store: Path, answer: str, told: str
) -> None:
    with pytest.raises(Retryable, match=told) as refused:
        example(store, launch=program(f"print({answer!r})")).launch(SLOT, "t1")
    assert len(str(refused.value).splitlines()) == 1


def test_unknown_fields_are_ignored_and_an_unknown_state_is_unknown(store: Path) -> None:
    listed = example(store, list=says({"instances": [{**MACHINE, "state": "dreaming", "colour": 7}], "more": 1}))
    assert [each.state for each in listed.instances().values()] == [InstanceState.UNKNOWN]


def test_a_machine_that_will_be_taken_away_says_why(store: Path) -> None:
    listed = example(store, list=says({"instances": [{**MACHINE, "interrupted": "reclaimed at 12:00"}]}))
    assert [each.interrupted for each in listed.instances().values()] == ["reclaimed at 12:00"]


@pytest.mark.parametrize(
    "answer",
    [
        {"instances": [MACHINE, {"id": "vm-2"}]},
        {"instances": [MACHINE, MACHINE]},
        {"error": "permanent", "text": "no"},
        {},
    ],
    ids=["one unreadable", "one twice", "refused", "no list"],
)
def test_a_list_is_whole_or_not_believed(store: Path, answer: Any) -> None:
    with pytest.raises(Retryable):
        example(store, list=says(answer)).instances()


def test_a_list_that_takes_too_long_is_given_up(store: Path) -> None:
    with pytest.raises(Retryable, match="list: no end within 1 s"):
        example(store, list_timeout_s=1.0, list=program("time.sleep(1000)")).instances()


def test_a_reboot_is_done_once_for_a_token(provider: CommandProvider, store: Path) -> None:
    made = provider.launch(SLOT, "t1")
    provider.reboot(made.id, "r1")
    provider.reboot(made.id, "r1")
    assert json.loads((store / f"{made.id}.json").read_text())["reboots"] == ["r1"]


def test_without_a_command_a_reboot_names_the_setting(store: Path) -> None:
    with pytest.raises(Permanent, match=r"provider\.command\.reboot"):
        example(store, reboot=None).reboot(InstanceId("vm-1"), "r1")


def test_a_program_that_is_not_there_is_told_with_its_name(store: Path) -> None:
    with pytest.raises(Retryable, match="/no/such/program"):
        example(store, list=("/no/such/program",)).instances()
