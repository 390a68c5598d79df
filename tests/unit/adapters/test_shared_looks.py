"""Checks that look at the same thing at the same moment look once."""

import threading

import pytest

from steward.adapters.node.shared_looks import KEEP_S, SharedLooks
from steward.checks import CHECKS
from steward.checks.check import Check
from steward.model.probe import HeadClock, ListProcesses, Probe, Raw
from tests.fakes.until import FACT_S, until


class Looks:
    """Counts, and holds back its answer while `gate` is closed."""

    def __init__(self) -> None:
        self.asked: list[Probe] = []
        self.gate = threading.Event()
        self.gate.set()
        self.now = 1000.0

    def __call__(self, probe: Probe) -> Raw:
        self.asked.append(probe)
        self.gate.wait(FACT_S)
        return Raw(output=str(len(self.asked)))


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def shared(looks: Looks) -> SharedLooks:
    return SharedLooks(looks, now=lambda: looks.now)


def test_equal_looks_at_the_same_moment_are_one_and_others_are_not(looks: Looks, shared: SharedLooks) -> None:
    assert [shared(HeadClock()).output for _ in range(3)] == ["1", "1", "1"]
    assert shared(ListProcesses()).output == "2"


def test_a_later_look_is_a_new_one(looks: Looks, shared: SharedLooks) -> None:
    shared(HeadClock())
    looks.now += KEEP_S + 0.01
    assert shared(HeadClock()).output == "2"


def test_threads_that_ask_the_same_wait_for_one_look_and_others_do_not_wait(looks: Looks, shared: SharedLooks) -> None:
    looks.gate.clear()
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(shared(HeadClock()).output)) for _ in range(4)]
    for thread in threads:
        thread.start()
    until("the first asks", lambda: looks.asked)
    looks.now += 60  # it hangs; old answers are let go meanwhile, the one that is awaited is not
    other = threading.Thread(target=shared, args=(ListProcesses(),))
    other.start()
    until("another question is asked beside it", lambda: len(looks.asked) == 2)
    looks.gate.set()
    for thread in [*threads, other]:
        thread.join(FACT_S)
    assert len(set(got)) == 1
    assert len(looks.asked) == 2


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_look_that_confirms_another_is_never_the_same_one(check: Check) -> None:
    assert check.confirm_s > KEEP_S
