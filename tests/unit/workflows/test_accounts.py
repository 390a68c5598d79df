"""Slurm's accounting is looked at beside the cycle, rarely, and only where quotas are."""

from collections.abc import Callable

from steward.model.accounting import Accounting, Qos
from steward.ports import Retryable
from steward.workflows.observe import Accounts
from tests.fakes.clock import FakeClock


class Rig:
    """Looks are done when the test says so."""

    def __init__(self) -> None:
        self.clock = FakeClock(1000.0)
        self.waiting: list[Callable[[], None]] = []
        self.rings = self.reads = 0
        self.answer: Accounting | Exception = Accounting(at=1000.0)
        self.accounts = Accounts(self._read, workers=self, clock=self.clock, ring=self._ring)

    def submit(self, work: Callable[[], None]) -> None:
        self.waiting.append(work)

    def seen(self, *, wanted: bool = True, changed: float = 0.0) -> Accounting | None:
        return self.accounts.seen(wanted=wanted, changed=changed)

    def work(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def _read(self) -> Accounting:
        self.reads += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def _ring(self) -> None:
        self.rings += 1


def test_where_no_quota_is_nobody_looks() -> None:
    rig = Rig()
    assert rig.seen(wanted=False) is None
    assert rig.waiting == []


def test_a_picture_serves_for_some_seconds_and_until_something_is_changed() -> None:
    rig = Rig()
    assert rig.seen() is None
    rig.work()
    assert rig.seen() == rig.answer
    rig.clock.at += 4.0
    rig.seen()
    assert rig.reads == 1
    assert rig.waiting == []
    rig.seen(changed=rig.clock.now())
    assert len(rig.waiting) == 1
    rig.work()
    rig.clock.at += 6.0
    rig.seen()
    assert len(rig.waiting) == 1


def test_the_bell_rings_for_news_only() -> None:
    rig = Rig()
    rig.seen()
    rig.work()
    rig.clock.at += 6.0
    rig.answer = Accounting(at=1006.0)
    rig.seen()
    rig.work()
    assert rig.rings == 1
    rig.clock.at += 6.0
    rig.answer = Accounting(at=1012.0, qos={"normal": Qos(name="normal")})
    rig.seen()
    rig.work()
    assert rig.rings == 2


def test_what_cannot_be_read_is_told_and_the_old_picture_stays() -> None:
    rig = Rig()
    rig.answer = Retryable("slurmctld does not answer")
    rig.seen()
    rig.work()
    first = rig.seen()
    assert first is not None
    assert first.trouble == "slurmctld does not answer"
    rig.work()
    rig.answer = Accounting(qos={"normal": Qos(name="normal")})
    rig.clock.at += 6.0
    rig.seen()
    rig.work()
    rig.answer = Retryable("gone again")
    rig.clock.at += 6.0
    rig.seen()
    rig.work()
    last = rig.seen()
    assert last is not None
    assert (last.trouble, set(last.qos)) == ("gone again", {"normal"})
