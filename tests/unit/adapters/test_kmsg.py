"""The kernel log, from a device and from a plain file."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from steward.adapters.node.kmsg import Batch, DeviceLog, FileLog, open_log
from steward.ports import Retryable
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S

CLOCK = FakeClock()


def texts(batch: Batch | None) -> list[str]:
    return [line.text for line in batch.lines] if batch else []


def append(path: Path, text: str) -> None:
    with path.open("a") as log:
        log.write(text)


def a_file(path: Path, position: int | None = 0, inode: int | None = None) -> FileLog:
    own = path.stat().st_ino if inode is None and path.exists() else inode or 0
    return FileLog(path, clock=CLOCK, position=position, inode=own)


def test_a_log_never_read_begins_at_its_present_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("of another machine\n")
    log = open_log(path, clock=CLOCK, position=None, inode=0)
    assert texts(log.read()) == []
    append(path, "new\n")
    assert texts(log.read()) == ["new"]
    assert log.read() is None


def test_a_log_read_before_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\n")
    log = a_file(path)
    batch = log.read()
    assert batch is not None
    append(path, "two\nthree\n")
    later = FileLog(path, clock=CLOCK, position=batch.position, inode=batch.inode)
    assert texts(later.read()) == ["two", "three"]


def test_a_line_is_taken_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("first\nhal")
    log = a_file(path)
    assert texts(log.read()) == ["first"]
    assert log.read() is None
    append(path, "f\n")
    assert texts(log.read()) == ["half"]


def test_a_log_that_appears_later_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = open_log(path, clock=CLOCK, position=None, inode=0)
    assert texts(log.read()) == []
    assert log.read() is None
    path.write_text("hello\n")
    assert texts(log.read()) == ["hello"]


@pytest.mark.parametrize("way", ["replaced", "cut"])
def test_a_log_that_is_replaced_or_cut_is_read_anew(tmp_path: Path, way: str) -> None:
    path = tmp_path / "log"
    path.write_text("old and long enough\n")
    log = a_file(path)
    log.read()
    if way == "replaced":
        (tmp_path / "new").write_text("new and just as long as before\n")
        (tmp_path / "new").rename(path)
    else:
        path.write_text("new\n")
    assert texts(log.read())[0].startswith("new")


def test_only_the_kernels_own_records_count_and_dmesgs_look_is_understood_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "3,100,5000,-;kernel error\n"
        "11,101,5001,-;written by a user\n"
        "6,102,5002,-,caller=T1;kernel info\n"
        "[   12.345678] as dmesg prints it\n"
        "<3>[1.0] with its level\n"
        "\n"
    )
    assert texts(a_file(path).read()) == [
        "kernel error",
        "kernel info",
        "as dmesg prints it",
        "with its level",
    ]


def test_an_endless_line_does_not_stop_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 200_000 + "\nafter\n")
    log = a_file(path)
    seen: list[str] = []
    while (batch := log.read()) is not None:
        seen += texts(batch)
    assert seen[-1] == "after"
    assert max(map(len, seen)) <= 1000


def test_a_log_that_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Retryable, match="cannot read the kernel log"):
        open_log(tmp_path / "file" / "log", clock=CLOCK, position=None, inode=0)
    with pytest.raises(Retryable, match="cannot read the kernel log"):
        DeviceLog(tmp_path / "none", clock=CLOCK, position=-1)


class Device:
    """A FIFO in place of /dev/kmsg: every write is read as one record, as long as it is read before the next."""

    def __init__(self, path: Path, position: int = -1) -> None:
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._writer = os.open(path, os.O_WRONLY)
        self.log = DeviceLog(path, clock=CLOCK, position=position)

    def write(self, record: str) -> list[str]:
        os.write(self._writer, record.encode())
        batch = self.log.read()
        return texts(batch)

    def close(self) -> None:
        self.log.close()
        os.close(self._reader)
        os.close(self._writer)


def test_a_devices_records_are_the_kernels_lines_with_their_own_time(tmp_path: Path) -> None:
    device = Device(tmp_path / "kmsg")
    os.write(device._writer, b"4,7,1000000,-;NVRM: Xid\n SUBSYSTEM=pci\n DEVICE=+pci:0000:05:00.0\n")
    batch = device.log.read()
    assert batch is not None
    assert texts(batch) == ["NVRM: Xid"]
    assert batch.position == 7
    assert batch.lines[0].at < CLOCK.now()
    device.close()


def test_a_record_that_came_after_the_device_was_read_to_its_end_is_not_older_than_that(tmp_path: Path) -> None:
    """The kernel stamps with a clock that nobody corrects: after months it is minutes behind."""
    device, began = Device(tmp_path / "kmsg"), time.monotonic()
    assert device.log.read() is None
    behind = int((time.monotonic() - 60) * 1e6)
    os.write(device._writer, f"4,7,{behind},-;NVRM: Xid\n".encode())
    batch = device.log.read()
    assert batch is not None
    took_s = time.monotonic() - began
    assert batch.lines[0].at >= CLOCK.now() - took_s, "the clock of the test stands still"
    device.close()


def test_a_users_record_on_the_device_is_not_the_kernels_word(tmp_path: Path) -> None:
    device = Device(tmp_path / "kmsg")
    assert device.write("12,8,1000000,-;NVRM: Xid (PCI:0000:05:00): 79\n") == []
    assert device.write("nonsense") == []
    device.close()


def test_records_that_were_read_before_are_skipped(tmp_path: Path) -> None:
    device = Device(tmp_path / "kmsg", position=10)
    assert device.write("4,10,1000000,-;old\n") == []
    assert device.write("4,11,1000000,-;new\n") == ["new"]
    device.close()


def test_waiting_for_a_device_ends_when_there_is_something_to_read(tmp_path: Path) -> None:
    device = Device(tmp_path / "kmsg")

    async def story() -> None:
        waiting = asyncio.ensure_future(device.log.wait())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        os.write(device._writer, b"4,1,1,-;x\n")
        await asyncio.wait_for(waiting, FACT_S)

    asyncio.run(story())
    device.close()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="this machine does not let us read /dev/kmsg")
def test_the_real_kernel_log_is_read_back_to_its_start_and_then_is_quiet() -> None:
    log = open_log(Path("/dev/kmsg"), clock=CLOCK, position=None, inode=0)
    first = log.read()
    assert first is not None
    assert first.position >= 0
    for _ in range(10_000):
        if log.read() is None:
            break
    else:
        pytest.fail("the log has no end")
    log.close()
