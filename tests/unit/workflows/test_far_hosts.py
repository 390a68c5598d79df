"""What a host gets, and that the first odd one ends an installation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.workflows.far_hosts import HostFacts, HostOutcome, HostProblem, HostRole, Tally, files_for_host, on_hosts

DEBS = (
    "steward-agent_0.1.0-1_amd64.deb",
    "steward-client_0.1.0-1_amd64.deb",
    "steward-common_0.1.0-1_amd64.deb",
    "steward-head_0.1.0-1_amd64.deb",
    "steward-shim-22.05_0.1.0-1_amd64.deb",
    "steward-shim-24.11_0.1.0-1_amd64.deb",
)
RPMS = tuple(name.replace("_0.1.0-1_amd64.deb", "-0.1.0-1.x86_64.rpm") for name in DEBS)
DEBIAN = HostFacts(uid=0, kind="deb", slurm="22.05")


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("0\ndeb\nslurm-wlm 22.05.8\n", DEBIAN),
        ("0\nrpm\nslurm 24.11.5\n", HostFacts(uid=0, kind="rpm", slurm="24.11")),
        ("1000\nnone\nnone\n", HostFacts(uid=1000, kind="none", slurm="")),
    ],
)
def test_three_lines_say_what_a_host_is(said: str, facts: HostFacts) -> None:
    assert HostFacts.of(said) == facts


@given(st.text(max_size=60))
def test_whatever_else_a_host_prints_is_odd_or_facts(said: str) -> None:
    try:
        text = HostFacts.of(said).kind
    except HostProblem as odd:
        text = str(odd)
    assert text.isprintable()


@pytest.mark.parametrize(("role", "own"), [(HostRole.NODE, "agent"), (HostRole.LOGIN, "client")])
@pytest.mark.parametrize(("kind", "ending"), [("deb", "_0.1.0-1_amd64.deb"), ("rpm", "-0.1.0-1.x86_64.rpm")])
def test_a_host_gets_what_its_role_needs_and_the_shim_of_its_slurm(
    role: HostRole, own: str, kind: str, ending: str
) -> None:
    names = files_for_host((*DEBS, *RPMS, "train.sh"), HostFacts(uid=0, kind=kind, slurm="24.11"), role)
    assert names == tuple(f"steward-{each}{ending}" for each in ("common", own, "shim-24.11"))


@pytest.mark.parametrize(
    ("files", "facts", "text"),
    [
        (DEBS, HostFacts(uid=1000, kind="deb", slurm="22.05"), "not root"),
        (DEBS, HostFacts(uid=0, kind="none", slurm="22.05"), "neither apt-get nor rpm"),
        (DEBS, HostFacts(uid=0, kind="deb", slurm=""), "no Slurm"),
        (
            DEBS,
            HostFacts(uid=0, kind="deb", slurm="26.05"),
            "Slurm 26.05 is there, the folder has a shim for 22.05, 24.11",
        ),
        (DEBS, HostFacts(uid=0, kind="rpm", slurm="22.05"), "no steward-common as rpm"),
        ((*DEBS, "steward-agent_0.1.0-2_amd64.deb"), DEBIAN, "2 files of steward-agent"),
        ((), DEBIAN, "no steward-common as deb"),
    ],
)
def test_a_host_that_cannot_have_them_is_odd(files: tuple[str, ...], facts: HostFacts, text: str) -> None:
    with pytest.raises(HostProblem, match=text):
        files_for_host(files, facts, HostRole.NODE)


class Fleet:
    """Hosts that are worked on; `odd` are some of them."""

    def __init__(self, odd: set[str]) -> None:
        self.odd = odd
        self.begun: list[str] = []

    def work(self, host: str) -> HostOutcome:
        self.begun.append(host)
        return HostOutcome(host=host, odd="strange" if host in self.odd else "")


def tried(hosts: list[str], fleet: Fleet, at_once: int) -> tuple[Tally, list[str]]:
    told: list[str] = []
    tally = on_hosts(hosts, fleet.work, lambda outcome: told.append(outcome.host), at_once=at_once)
    return tally, told


@given(
    count=st.integers(min_value=1, max_value=12),
    at_once=st.integers(min_value=1, max_value=5),
    odd=st.sets(st.integers(min_value=1, max_value=12), max_size=3),
)
def test_every_host_is_worked_on_once_or_named_as_untouched(count: int, at_once: int, odd: set[int]) -> None:
    hosts = [f"n{number}" for number in range(1, count + 1)]
    fleet = Fleet({f"n{number}" for number in odd})
    tally, told = tried(hosts, fleet, at_once)
    assert sorted([*(each.host for each in tally.ended), *tally.untouched]) == sorted(hosts)
    assert sorted(told) == sorted(fleet.begun) == sorted(each.host for each in tally.ended)
    assert bool(tally.odd) == bool(fleet.odd & set(fleet.begun))
    assert not tally.untouched or tally.odd


def test_an_odd_first_host_is_the_only_one_that_is_touched() -> None:
    tally, _ = tried(["n1", "n2", "n3"], Fleet({"n1"}), at_once=3)
    assert ([each.host for each in tally.ended], tally.untouched) == (["n1"], ("n2", "n3"))
