"""Every sentence that a check has for people: one look after which it is said, and one of the same check after which it
would be false and is not.

The looks are the recordings, and the rows below for what no recording shows. A sentence in the code without such a pair
fails the last test: add a recording or a row.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from steward.checks import amd, clock, disk, gpu, kernel, mounts, neuron, processes, services
from steward.checks import memory as ram
from steward.checks.check import Check, Judgement, Past
from steward.checks.fabric import ib_errors, ib_ports, net
from steward.checks.gpu import links, memory
from steward.checks.kernel_events import OLD_S, with_line
from steward.checks.kernel_log import judge
from steward.checks.site import nhc_check
from steward.model.probe import GpuProcess, Raw
from tests.builders import sysfs
from tests.builders.gpus import process, seen, with_fault
from tests.builders.kernel_corpus import BAD, REPORTED, SHARED, XID
from tests.builders.looks import Looks
from tests.builders.sentences import ROOT, lacking
from tests.builders.sysfs import amd_gpu, ethernet, infiniband, neuron_device, raw
from tests.unit.checks import test_accelerators_dcgm as dcgm
from tests.unit.checks import test_gpu as gpus
from tests.unit.checks import test_judges as judges
from tests.unit.checks import test_kernel_events as events
from tests.unit.checks import test_mounts as points
from tests.unit.checks import test_nhc as nhc
from tests.unit.checks import test_samples as samples
from tests.unit.checks import test_site as site
from tests.unit.checks import test_system as system
from tests.unit.checks.test_sysfs_recordings import CHECKS as SYSFS
from tests.unit.checks.test_sysfs_recordings import RECORDINGS, TURNS

Said = tuple[str, str]
"""A check, and what it says."""


NAMES_NONE = '{"body": {"Overall Health": {"value": "Warning"}}}'
FINE, OF_N2, OF_N3 = (f"HEALTH_CHECK_RESULT:n{n}:Passed:none:fine" for n in (1, 2, 3))
CUT = "x" * 65536
LEFT = with_fault(gpus.H200, memory_used_mib=500)
USED = with_fault(gpus.H200, processes=(GpuProcess(pid=4711, mib=100),))
IDLE = (process(1, "systemd"), process(50, "slurmstepd"), process(4711, "python", uid=1000))
BUSY = (*IDLE, process(51, "bash", parent=50, uid=1000))
HUNG = Raw(hung="NVML hangs: no answer within 20 s")
MEMINFO = Raw(files={"/proc/meminfo": "MemTotal: 1024000 kB\n"})
SILENT_AMD = raw({path: text for path, text in amd_gpu(0).items() if "/device/" not in path})
ODD_AMD = raw({path: "ue ce" if path.endswith("err_count") else text for path, text in amd_gpu(0).items()})
SILENT_NEURON = raw({path: text for path, text in neuron_device(0).items() if "/stats/" not in path})
UP, DOWN = infiniband(), infiniband(state="1: DOWN", phys_state="2: Polling")
IN_BOND = [ethernet("eth1", is_in_bond=True), ethernet("eth1", operstate="down", is_in_bond=True)]
NO_STATE = raw({**ethernet(), "/sys/class/net/eth0/operstate": None})
NO_CARRIER = raw({path: "?" if "carrier" in path else text for path, text in ethernet().items()})
SYMBOLS = [raw(infiniband(counters={"symbol_error": 3 * n})) for n in range(61)]
LOOKS: list[tuple[Any, ...]] = [
    (amd.ECC, SILENT_AMD),
    (amd.ECC, ODD_AMD),
    (amd.BADPAGES, raw(amd_gpu(0)), raw(amd_gpu(0, pages="R"))),
    (neuron.ECC, SILENT_NEURON),
    (ib_errors.SYMBOL, *SYMBOLS),
    (ib_ports.STATE, raw(infiniband(state="???"))),
    (net.OPERSTATE, NO_STATE),
    (net.OPERSTATE, raw(ethernet()), raw(ethernet(operstate="down", flags="0x1002"))),
    (net.OPERSTATE, *map(raw, IN_BOND)),
    (net.CARRIER, NO_CARRIER),
    (clock.CLOCK, Raw(skew_s=None)),
    (clock.CLOCK, Raw(skew_s=31.0)),
    (clock.CLOCK, Raw(skew_s=1.0)),
    (disk.DISK, Raw(disks={})),
    (disk.DISK, Raw(disks={"/": judges.a_disk(91)})),
    (disk.DISK, Raw(disks={"/tmp": judges.a_disk(99)})),
    (gpu.present.HANG, HUNG),
    (gpu.present.HANG, *[HUNG] * 5),
    (gpu.present.HANG, gpus.H200),
    (gpu.present.PRESENT, gpus.H200, Raw(gpus=())),
    (mounts.MOUNTS, Raw(disks={"/": judges.a_disk()})),
    (processes.DSTATE, Raw()),
    (services.SLURMD, Raw(returncode=1, output="Connection refused")),
    (services.SLURMD, Raw(returncode=1, output="Socket timed out")),
    (services.MUNGE, Raw(returncode=None)),
]
"""A check, and what its looks bring, a minute after each other."""
ON_SITES: list[tuple[Any, ...]] = [
    (ib_ports.STATE, {"ib.state.min_active": 2}, raw(DOWN, infiniband("mlx5_1"))),
    (ib_ports.STATE, {"ib.state.min_active": 2}, raw(UP)),
    (ib_ports.RATE, {"ib.rate.min_gbps": 800}, raw(UP)),
    (mounts.MOUNTS, {"mounts.writable": ()}, Raw()),
    (kernel.REQUIRED, {"os.modules.required": ()}, Raw(files={"/proc/modules": ""})),
    (services.UNITS, {"svc.units.units": ()}, Raw()),
]
"""The same with what the site says of the check."""
PROBES: list[tuple[Any, ...]] = [
    (clock.SYNC, Raw(), Raw()),
    (processes.ZOMBIE, Raw(), Raw()),
    (processes.ROGUE, Raw()),
    (links.MANAGER, Raw(), Raw()),
    (links.MANAGER, gpus.SWITCHES, Raw(processes=(process(8, "nv-fabricmanage"),))),
    (links.MANAGER, gpus.SWITCHES, Raw()),
    (memory.LEFTOVER, LEFT, Raw()),
    (memory.LEFTOVER, USED, Raw(processes=BUSY)),
    (memory.LEFTOVER, USED, Raw(processes=IDLE)),
    (memory.LEFTOVER, LEFT, Raw(processes=IDLE)),
    (memory.LEFTOVER, gpus.H200, Raw(processes=IDLE)),
    (ram.MEMORY, MEMINFO, judges.shows(1000)),
    (ram.MEMORY, Raw(files={"/proc/meminfo": "?"}), judges.shows(1000)),
]
"""A check, and what each of its probes brings."""


def of_recordings() -> Iterator[Said]:
    """Of the recordings, and where there is nothing to look at."""
    for check in system.SYSTEM:
        for path in sorted((RECORDINGS / check.id).glob("*.txt")):
            case = f"{check.id}/{path.stem}"
            yield from ((check.id, system.judged(*[case] * looks).text) for looks in (1, 6))
    for id, check in SYSFS.items():
        before, after = (sysfs.recorded(RECORDINGS / id / f"{name}.txt") for name in ("before", "after"))
        turns = TURNS.get(id, 1)
        looks = [after, before] * turns if id == "ib.flap" else [after] * turns
        yield from ((id, Looks(check).over(0, 60.0, *all_of).text) for all_of in ([Raw()], [before], [before, *looks]))


def of_gpus() -> Iterator[Said]:
    for check in gpus.PLAIN:
        yield from ((check.id, seen(check, raw).text) for raw in (gpus.H200, gpus.V100, Raw(gpus=())))
    for check, fault, *_ in gpus.FAULTS:
        yield check.id, seen(check, with_fault(gpus.H200, **fault)).text


def of_others() -> Iterator[Said]:
    """Of what no recording shows: one look, or several after each other."""
    for check, *brought in LOOKS:
        yield check.id, Looks(check).over(0, 60.0, *brought).text
    for check, limit, *brought in ON_SITES:
        yield check.id, Looks(check, limit=limit).over(0, 60.0, *brought).text
    for check, *raws in PROBES:
        yield check.id, seen_by(check, *raws).text
    yield "mounts", points.judged(points.TABLE + "#" * 2**20, "/not/there").text
    yield "mem.edac", system.judged("mem.edac/good", "mem.edac/storm", every_s=600.0).text


def of_programs() -> Iterator[Said]:
    """Of what programs of others print."""
    for name, code in (("healthy.json", 0), ("no-service.txt", 255), ("no-watches.txt", 255)):
        yield "dcgm", dcgm.judged(dcgm.recorded(name), code).text
    yield from (
        ("dcgm", dcgm.judged(*answer).text) for answer in (("", None), ("", 124), ("garbage", 1), (NAMES_NONE, 0))
    )
    yield from (("site", judged_site(output, 0).text) for output in (FINE, f"{OF_N2}\n{OF_N3}", CUT))
    yield from (("site", check.title) for check in (site.CHECK, nhc_check(nhc.LIMITS)))
    for status, output, conf in ((0, "", "x"), (0, "", None), (7, "", "x"), (143, "", "x"), (1, nhc.NOT_MOUNTED, "x")):
        yield "site.nhc", nhc.judged(status, output, conf).text
    yield "site.nhc", nhc.judged(1, "ERROR:  x:  Health check failed:  check_fs_free:  /tmp has 1 kB free (0%)\n").text


def of_the_kernel() -> Iterator[Said]:
    lines = [*(line for line, *_ in BAD), *(line for line, _ in SHARED), *REPORTED]
    yield from (("kernel_log", sign.verdict.text) for sign in map(judge, lines) if sign is not None)
    yield from (("kernel_log", event.verdict.text) for event in events.after((1.0, XID + "79, x"), (3.0, events.LOST)))
    sign = judge(XID + "79, x")
    assert sign is not None
    yield from (("kernel_log", event.verdict.text) for event in with_line((), sign, 0.0, now=OLD_S + 1))
    yield from (("samples", told.text) for looks in ("b", "bb") if (told := samples.after(looks).told) is not None)


def judged_site(output: str, status: int) -> Judgement:
    raw = Raw(returncode=status, output=output, truncated=output == CUT)
    return site.CHECK.verdict((raw,), site.FACTS, Past())


def seen_by(check: Check, *raws: Raw) -> Judgement:
    return check.verdict(raws, judges.FACTS, Past())


def pairs() -> list[tuple[str, str]]:
    texts: dict[str, set[str]] = {}
    for id, text in (*of_recordings(), *of_gpus(), *of_others(), *of_programs(), *of_the_kernel()):
        texts.setdefault(id, set()).add(text)
    return [pair for said in texts.values() for pair in permutations(sorted(said), 2)]


_NO_JUDGE = ("job_log.py", "limits.py", "check.py", "known.py", "catalogue.py")
"""Of settings, of users' output, and of the page that lists the checks."""

_SETTINGS = "_thresholds|every_s|params"


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    paths = [path for path in sorted((ROOT / "checks").rglob("*.py")) if path.name not in _NO_JUDGE]
    assert lacking(paths, f"{_SETTINGS}|_?[A-Z].*", pairs()) == []
