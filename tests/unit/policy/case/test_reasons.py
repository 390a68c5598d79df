"""Each reason that Slurm itself writes is known, and only under the login of who writes it."""

import re
from pathlib import Path

import pytest

from steward.model.node import Reason
from steward.policy.slurm_reasons import ROWS, Author, Kind, Response, row_of

REASONS = [
    (1, "Not responding", Kind.SILENT, Response.WATCH),
    (2, "Node unexpectedly rebooted", Kind.INFRA, Response.CHECK),
    (3, "ResumeTimeout reached", Kind.INFRA, Response.REVIVE),
    (4, "reboot timed out", Kind.INFRA, Response.REBOOT),
    (5, "reboot complete", Kind.LIFECYCLE, Response.CHECK),
    (6, "reboot issued", Kind.LIFECYCLE, Response.LEAVE),
    (6, "reboot requested", Kind.LIFECYCLE, Response.LEAVE),
    (6, "Reboot ASAP", Kind.LIFECYCLE, Response.LEAVE),
    (7, "POWER_DOWN_ASAP", Kind.LIFECYCLE, Response.LEAVE),
    (8, "Kill task failed (JobId=17 StepId=0)", Kind.WORKLOAD, Response.CHECK),
    (8, "Kill task failed", Kind.WORKLOAD, Response.CHECK),
    (9, "Job step not running (JobId=17 StepId=0)", Kind.WORKLOAD, Response.CHECK),
    (10, "Prolog error", Kind.INFRA, Response.LAUNCH),
    (11, "Job env setup error", Kind.CONFIG, Response.TELL),
    (12, "Epilog error", Kind.INFRA, Response.LAUNCH),
    (13, "Prolog/Epilog failure", Kind.INFRA, Response.LAUNCH),
    (14, "batch job complete failure", Kind.STORAGE, Response.LAUNCH),
    (15, "Duplicate jobid", Kind.CONFIG, Response.RESTART_SLURMD),
    (16, "SlurmdSpoolDir is full", Kind.STORAGE, Response.LAUNCH),
    (17, "switch_g_job_postfini failed", Kind.INFRA, Response.REBOOT),
    (18, "Bad core count", Kind.CONFIG, Response.TELL),
    (19, "NO NETWORK ADDRESS FOUND", Kind.CONFIG, Response.TELL),
    (20, "Low socket*core*thread count, Low CPUs", Kind.CONFIG, Response.COUNT),
    (21, "Low CPUs", Kind.CONFIG, Response.COUNT),
    (22, "Low RealMemory (reported:500 < 100.00% of configured:1000)", Kind.INFRA, Response.COUNT),
    (23, "Low TmpDisk", Kind.STORAGE, Response.COUNT),
    (24, "CoreSpec differ", Kind.CONFIG, Response.TELL),
    (25, "Could not unpack gres data", Kind.CONFIG, Response.TELL),
    (26, "gres/gpu count reported lower than configured (7 < 8)", Kind.INFRA, Response.COUNT),
    (27, "gres/gpu count changed and jobs are using them (7 != 8)", Kind.INFRA, Response.COUNT),
    (28, "gres/gpu count too low (7 < 8)", Kind.INFRA, Response.COUNT),
    (28, "gres/gpu:h100 count too low (7 < 8)", Kind.INFRA, Response.COUNT),
    (29, "gres/gpu type (a100) reported but not configured", Kind.CONFIG, Response.TELL),
    (30, "gres/gpu type changed and jobs are using them", Kind.CONFIG, Response.TELL),
    (31, "GRES autodetected core affinity 0-3 on node n1 doesn't match socket boundaries", Kind.CONFIG, Response.TELL),
    (32, "RestrictedCoresPerGPU=2 but not enough cores", Kind.CONFIG, Response.TELL),
    (33, "Reported active features (a) are not a superset of node's available ones", Kind.CONFIG, Response.TELL),
    (34, "Failed to parse dynamic_conf nodeline", Kind.CONFIG, Response.TELL),
    (34, "Failed to set topology 'default:s1'", Kind.CONFIG, Response.TELL),
    (35, "Failed to set node feature(s): 'knl'", Kind.CONFIG, Response.TELL),
]


@pytest.mark.parametrize(("number", "text", "kind", "response"), REASONS)
def test_each_reason_of_slurms_own_has_its_class_and_response(
    number: int, text: str, kind: Kind, response: Response
) -> None:
    row = row_of(Reason(text=text, user="slurm"), "slurm")
    assert row is not None
    assert (row.number, row.kind, row.response) == (number, kind, response)


@pytest.mark.parametrize(("number", "text", "kind", "response"), REASONS)
def test_the_same_words_by_a_person_are_his_own(number: int, text: str, kind: Kind, response: Response) -> None:
    assert row_of(Reason(text=text, user="alice"), "slurm") is None
    assert row_of(Reason(text=text, user=""), "slurm") is None


def test_every_row_is_tried() -> None:
    assert {number for number, *_ in REASONS} == {row.number for row in ROWS}
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_root_counts_as_slurm_only_for_what_slurmd_writes() -> None:
    by_root = {row.number for row in ROWS if row.author is Author.NODE}
    for number, text, *_ in REASONS:
        assert (row_of(Reason(text=text, user="root"), "slurm") is not None) == (number in by_root)
    assert by_root == {8, 9, 16, 17}


def test_what_slurm_appended_does_not_hide_its_first_reason() -> None:
    row = row_of(Reason(text="Prolog error : Not responding", user="slurm"), "slurm")
    assert row is not None
    assert row.name == "prolog_error"


@pytest.mark.parametrize("ordered", ["Reboot ASAP", "reboot requested"])
def test_a_reboot_by_slurm_is_its_own_whoever_ordered_it(ordered: str) -> None:
    for end, number in (("", 6), (" : reboot timed out", 4), (" : reboot timed out : Not responding", 4)):
        row = row_of(Reason(text=f"{ordered} : reboot issued{end}", user="alice"), "slurm")
        assert row is not None
        assert row.number == number
    for persons in ("kernel : reboot issued : reboot timed out", ordered, "reboot timed out"):
        assert row_of(Reason(text=persons, user="alice"), "slurm") is None


@pytest.mark.parametrize(
    "text", ["NHC: disk full", "[HC] gpu", "my maintenance", "", "Action:Reboot", "Prolog", "prolog error"]
)
def test_what_is_not_in_the_table_is_somebody_elses(text: str) -> None:
    assert row_of(Reason(text=text, user="slurm"), "slurm") is None


HEALTH = Path(__file__).parents[4] / "docs" / "health.md"
TOLD_IN_WORDS = ("gres_lower", "gres_changed", "gres_low", "gres_type", "gres_type_changed", "gres_sockets")
TOLD_AS_KIND = ("features", "dynamic", "node_features")


@pytest.mark.parametrize(("number", "text", "kind", "response"), REASONS)
def test_the_table_in_the_docs_names_each_reason(number: int, text: str, kind: Kind, response: Response) -> None:
    row = next(row for row in ROWS if row.number == number)
    if row.name in (*TOLD_IN_WORDS, *TOLD_AS_KIND):
        return
    named = re.findall(r"`([^`]+)`", HEALTH.read_text().partition("| Slurm's reason |")[2].partition("\n\n")[0])
    assert any(text.startswith(one) for one in named), text
