"""NVML through the child that stays, with NVIDIA's own bindings on a library of ours."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.node.nvml import Conversation, Nvml
from steward.adapters.process import Failed, run
from steward.model.probe import Gpu, GpuProcess
from tests.fakes.nvml import DEVICES, FakeGpus
from tests.fakes.until import FACT_S, until

CHILD = "steward.adapters.node.nvml_child"


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[FakeGpus]:
    fake = FakeGpus(tmp_path)
    yield fake
    fake.nvml.let_go()


def look(fake: FakeGpus) -> tuple[Gpu, ...]:
    raw = fake.nvml.look(DEVICES, FACT_S)
    assert raw.gpus is not None, raw
    return raw.gpus


def children() -> set[int]:
    """Our own that ask NVML."""
    found = run(["ps", "-ww", "--ppid", str(os.getpid()), "-o", "pid=,args="], timeout_s=FACT_S, check=False)
    return {int(line.split()[0]) for line in found.text.splitlines() if CHILD in line}


def test_one_child_answers_look_after_look(gpus: FakeGpus) -> None:
    look(gpus)
    child = children()
    assert len(child) == 1
    look(gpus)
    assert children() == child


def test_a_healthy_gpu_is_told_in_full(gpus: FakeGpus) -> None:
    first, *rest = look(gpus)
    assert len(rest) == 7
    assert (first.index, first.error, first.name, first.bus) == (0, "", "NVIDIA H200", "00000000:10:00.0")
    assert first.uuid.startswith("GPU-")
    assert (first.recovery_action, first.ecc_uncorrected, first.remap_pending, first.remap_failed) == (
        0,
        0,
        False,
        False,
    )
    assert (first.temperature_c, first.margin_c, first.clock_reasons) == (34, 53, 1)
    assert (first.pcie_width, first.pcie_width_max, first.nvlinks) == (16, 16, (True,) * 18)
    assert (first.persistence, first.inforom_error, first.processes) == (True, "", ())
    assert first.memory_used_mib == 0


def test_what_gpus_do_is_told_alone_and_the_next_look_is_whole_again(gpus: FakeGpus) -> None:
    gpus.say("1 busy 100", "1 memory_busy 3", "1 energy 5000", "1 process 4711 100", "2 busy -1", "3 error 15")
    raw = gpus.nvml.look(DEVICES, FACT_S, use_only=True)
    assert raw.gpus is not None
    _, spins, mute, lost, *_ = raw.gpus
    assert (spins.busy_percent, spins.memory_busy_percent, spins.energy_mj) == (100, 3, 5000)
    assert spins.processes == (GpuProcess(pid=4711, mib=100),)
    assert (spins.temperature_c, spins.nvlinks) == (None, ())
    assert (mute.busy_percent, mute.error) == (None, "")
    assert lost.error == "GPU is lost"
    assert look(gpus)[0].temperature_c == 34


def test_what_a_gpu_cannot_tell_is_absent_and_no_error(gpus: FakeGpus) -> None:
    gpus.say(
        "* margin -1", "* remapped -1", "* nvlinks 0", "* pcie_width -1", "* sram_uncorrected -1", "* fabric_state -1"
    )
    first = look(gpus)[0]
    assert first.error == ""
    assert (first.margin_c, first.remapped_uncorrected, first.pcie_width, first.sram_uncorrected) == (None,) * 4
    assert (first.nvlinks, first.nvlink_errors, first.fabric_state, first.retired_pages) == ((), None, None, None)


def test_faults_are_seen_at_the_next_look(gpus: FakeGpus) -> None:
    look(gpus)
    gpus.say("2 recovery_action 2", "3 remap_failed 1", "4 nvlinks_down 1", "5 process 4711 100", "6 nvlink_crc 3")
    seen = look(gpus)
    assert seen[2].recovery_action == 2
    assert seen[3].remap_failed is True
    assert seen[4].nvlinks == (False, *(True,) * 17)
    assert seen[5].processes == (GpuProcess(pid=4711, mib=100),)
    assert seen[6].nvlink_errors == 3 * 18
    assert seen[0] == look(gpus)[0]


@pytest.mark.parametrize(("code", "words"), [(15, "GPU is lost"), (16, "GPU requires restart"), (999, "Unknown Error")])
def test_a_gpu_that_does_not_answer_is_kept_with_nvmls_code(gpus: FakeGpus, code: int, words: str) -> None:
    gpus.say(f"2 error {code}")
    seen = look(gpus)
    assert (seen[2].code, seen[2].error) == (code, words)
    assert seen[2].uuid
    assert not any(gpu.error for gpu in seen if gpu.index != 2)


def test_an_odd_error_of_one_question_does_not_make_a_gpu_lost(gpus: FakeGpus) -> None:
    gpus.say("1 inforom 999")
    assert (look(gpus)[1].error, look(gpus)[1].inforom_error) == ("", None)


def test_a_corrupt_inforom_is_told_and_the_gpu_is_not_lost(gpus: FakeGpus) -> None:
    gpus.say("1 inforom 14")
    assert (look(gpus)[1].error, look(gpus)[1].inforom_error) == ("", "Corrupted infoROM")
    gpus.say()
    assert look(gpus)[1].inforom_error == "Corrupted infoROM", "it is read once in an hour"


def test_a_gpu_that_nvml_does_not_count_is_an_error_of_that_device(gpus: FakeGpus) -> None:
    gpus.say("gpus 7")
    seen = look(gpus)
    assert [bool(gpu.error) for gpu in seen] == [False] * 7 + [True]


def test_an_nvml_that_cannot_begin_is_an_error_of_the_look_until_it_can(gpus: FakeGpus) -> None:
    gpus.say("init 9")
    with pytest.raises(Failed, match="NVML cannot be asked: Driver Not Loaded"):
        look(gpus)
    gpus.say()
    assert len(look(gpus)) == 8


def test_without_a_device_of_the_driver_no_child_is_started(gpus: FakeGpus) -> None:
    assert gpus.nvml.look((), 1.0).gpus == ()
    assert children() == set()


def test_a_hang_is_told_in_time_its_child_killed_and_a_new_one_started(gpus: FakeGpus) -> None:
    look(gpus)
    (before,) = children()
    gpus.say("hang")
    raw = gpus.nvml.look(DEVICES, 0.3)
    assert (raw.gpus, raw.hung) == (None, "NVML hangs: no answer within 0.3 s")
    until("its child is ended", lambda: not children())
    gpus.say()
    assert len(look(gpus)) == 8
    assert before not in children()


def test_a_child_that_dies_is_an_error_and_the_next_look_has_a_new_one(gpus: FakeGpus) -> None:
    look(gpus)
    (child,) = children()
    os.kill(child, signal.SIGKILL)
    with pytest.raises(Failed, match="has ended"):
        look(gpus)
    assert len(look(gpus)) == 8


class Wedged(Conversation):
    """A child that the kernel does not let go: killing it does nothing while `is_stuck`."""

    is_stuck = True

    def close(self) -> bool:
        return False if type(self).is_stuck else super().close()


def test_children_that_cannot_be_killed_are_left_behind_but_not_without_end(gpus: FakeGpus) -> None:
    gpus.say("hang")
    nvml = Nvml(gpus.argv(), converse=Wedged)
    Wedged.is_stuck = True
    assert [nvml.look(DEVICES, 0.1).hung for _ in range(2)] == ["NVML hangs: no answer within 0.1 s"] * 2
    assert len(children()) == 2
    assert "cannot even be killed" in nvml.look(DEVICES, 0.1).hung
    assert len(children()) == 2
    Wedged.is_stuck = False
    gpus.say()
    assert len(nvml.look(DEVICES, FACT_S).gpus or ()) == 8
    nvml.let_go()
    until("all have ended", lambda: not children())


def test_nothing_of_a_gpu_is_open_and_no_look_is_made_while_one_is_reset(gpus: FakeGpus) -> None:
    look(gpus)
    with gpus.nvml.away():
        assert children() == set()
        with pytest.raises(Failed, match="while a GPU is reset"):
            look(gpus)
        assert children() == set()
    assert len(look(gpus)) == 8


@pytest.mark.parametrize("lines", [(), ("hang",)])
def test_the_child_ends_with_the_agent_even_while_nvml_hangs(gpus: FakeGpus, lines: tuple[str, ...]) -> None:
    gpus.say(*lines)
    shell = "import sys, time; from steward.adapters.node.nvml import Nvml; n = Nvml(sys.argv[2:]); "
    ask = "print(n._start().pid, flush=True); n._child.ask(b'look', timeout_s=float(sys.argv[1]))"
    done = run([sys.executable, "-c", shell + ask, "0.3", *gpus.argv()], timeout_s=FACT_S, check=False)
    pid = int(done.text.split()[0])
    until("it has ended", lambda: not Path(f"/proc/{pid}").exists())


def test_the_identities_are_those_of_the_last_good_look(gpus: FakeGpus) -> None:
    gpus.become("one")
    seen = tuple(gpu.uuid for gpu in look(gpus))
    assert len(set(seen)) == 8
    assert gpus.nvml.uuids == seen
    gpus.say("hang")
    gpus.nvml.look(DEVICES, 0.1)
    assert gpus.nvml.uuids == seen
    gpus.say()
    gpus.become("another")
    look(gpus)
    assert not set(gpus.nvml.uuids) & set(seen)


def test_without_pynvml_the_package_to_install_is_named(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('none')")
    nvml = Nvml(("env", f"PYTHONPATH={tmp_path}", sys.executable, "-P", "-m", CHILD))
    with pytest.raises(Failed, match=r"install steward-slurm with its extra \[gpu\]"):
        nvml.look(DEVICES, FACT_S)
    nvml.let_go()


def test_garbage_from_the_child_is_an_error(tmp_path: Path) -> None:
    nvml = Nvml((sys.executable, "-c", "print('{}', flush=True); input(); print('garbage', flush=True); input()"))
    with pytest.raises(Failed, match="NVML's child failed"):
        nvml.look(DEVICES, FACT_S)
