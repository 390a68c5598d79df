"""Whatever a probe brings back, a judge comes to a verdict: no text of a file or a program makes it crash."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.checks import CHECKS
from steward.checks.check import Check, Facts, Judgement, Past, Reading
from steward.checks.known import limits_of
from steward.model.ids import NodeName
from steward.model.probe import (
    AskMunge,
    Disk,
    DiskUsage,
    FindProcess,
    Gpu,
    HeadClock,
    KernelClock,
    ListProcesses,
    Probe,
    Process,
    QueryGpus,
    Raw,
    ReadFiles,
    ReadTree,
    RunOnEach,
    RunProgram,
    SpoolUsage,
    TouchMounts,
)

NOW = 1_800_000_000.0
FACTS = Facts(
    node=NodeName("n1"),
    limits=limits_of({"mounts.present": ("/data",), "fs.shared.paths": ("/home",)}),
    slurm_conf="/etc/slurm/slurm.conf",
)
PIECES = (
    *(
        "0",
        "1",
        "-1",
        "9" * 30,
        "\u00b2",
        "nan",
        "inf",
        "1e999",
        "N/A",
        " ",
        "\n",
        "\n\n",
        ":",
        ",",
        "/",
        "|",
        "=",
        "-",
    ),
    *("[U_]", "md0 : active raid1", "{", '{"a":', "[[", "MemTotal:  1 kB", "MemAvailable: 99999999999999999999 kB"),
    *("Id=a.service", "ActiveState=failed", "LoadState=loaded", "Gres=gpu:8", "CPUTot=", "RealMemory=1", "USEC=1"),
    *("HEALTH_CHECK_RESULT:n1:Failed:reboot:x", "root:x:0:", "4: ACTIVE", "ue: 1", "0-4095", "simd_count 1"),
)
small = st.integers(-(2**65), 2**65)
values = st.recursive(
    st.none() | st.booleans() | small | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("critical_warning", "value", "smart_status", "passed", "body")) | st.text(max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
texts = st.text(max_size=100) | st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | values.map(json.dumps)
processes = st.builds(
    Process,
    pid=st.integers(1, 9),
    parent=st.integers(0, 9),
    uid=st.sampled_from((0, 1000, 2**32 - 1)),
    state=st.sampled_from("RSDZTIX") | st.text(max_size=2),
    name=st.sampled_from(("slurmstepd", "nvidia", "chronyd")) | st.text(max_size=8),
    started=st.floats(0, NOW),
    ticks=st.integers(0, 2),
)
sizes = st.integers(0, 2**64)
disks = st.builds(Disk, total=sizes, free=sizes, inodes=sizes, inodes_free=sizes, read_only=st.booleans())
gpus = st.builds(Gpu, **{field.name: ... for field in dataclasses.fields(Gpu)})


answers = st.builds(Raw, returncode=st.none() | st.integers(-9, 255), output=texts)
mounts = st.dictionaries(st.sampled_from(("/home", "/fsx")) | texts, st.just("") | texts, max_size=3)
BROUGHT: dict[type, st.SearchStrategy[Raw]] = {
    ListProcesses: st.builds(Raw, processes=st.lists(processes, max_size=6).map(tuple)),
    FindProcess: st.builds(Raw, processes=st.lists(processes, max_size=1).map(tuple)),
    TouchMounts: st.builds(Raw, mounts=mounts),
    DiskUsage: st.builds(Raw, disks=st.dictionaries(st.sampled_from(("/", "/data", "/var")), disks, max_size=3)),
    SpoolUsage: st.builds(Raw, disks=st.dictionaries(st.just("/var/spool/slurmd"), disks, max_size=1)),
    RunProgram: answers,
    AskMunge: answers,
    QueryGpus: st.builds(Raw, gpus=st.none() | st.lists(gpus, max_size=2).map(tuple), hung=st.just("") | texts),
    HeadClock: st.builds(Raw, skew_s=st.none() | st.floats(allow_nan=False)),
    KernelClock: st.builds(Raw, synchronised=st.none() | st.booleans()),
}


def raws(probe: Probe) -> st.SearchStrategy[Raw]:
    """What that kind of probe may bring at worst."""
    if isinstance(probe, ReadFiles | ReadTree | RunOnEach):
        return st.builds(Raw, files=files(probe), returncode=st.sampled_from((None, 0)), output=texts)
    return BROUGHT[type(probe)]


def files(probe: Probe) -> st.SearchStrategy[dict[str, str | None]]:
    names = st.from_regex(r"[a-z0-9_.:-]{1,12}", fullmatch=True)
    match probe:
        case ReadFiles():
            return st.fixed_dictionaries({path: st.none() | texts for path in probe.paths})
        case ReadTree(patterns=patterns) | RunOnEach(patterns=patterns) if patterns:
            pattern = st.sampled_from(patterns)
            path = st.builds(lambda pattern, name: pattern.replace("[0-9]*", name).replace("*", name), pattern, names)
            return st.dictionaries(path, st.none() | texts, max_size=8)
        case _:
            return st.just({})


def judged(check: Check, seen: list[tuple[Raw, ...]], *, was_bad: bool) -> Judgement:
    """The verdict on the last of the looks, with what the check keeps of those before it."""
    past = Past(now=NOW, was_bad=was_bad)
    for number, each in enumerate(seen):
        if check.readings is not None:
            one = Reading(at=NOW - 300.0 * (len(seen) - 1 - number), values=check.readings(each))
            past = dataclasses.replace(past, readings=(*past.readings, one))
        if check.note is not None:
            past = dataclasses.replace(past, notes=check.note(each, FACTS, past))
    return check.verdict(seen[-1], FACTS, past)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
@settings(max_examples=12, database=None)
@given(data=st.data())
def test_every_judge_comes_to_a_verdict(check: Check, data: st.DataObject) -> None:
    one_look = st.tuples(*(raws(probe) for probe in check.probes(FACTS)))
    seen = data.draw(st.lists(one_look, min_size=1, max_size=3))
    verdict = judged(check, seen, was_bad=data.draw(st.booleans()))
    assert isinstance(verdict, Judgement)
    assert len(verdict.text) < 100_000
