"""The README's table of what was tested is made from results alone."""

from pathlib import Path

import pytest

from tools.tested import BEGIN, END, cases_in, filled, table

_ON = (
    '<properties><property name="slurm" value="{slurm}"/><property name="os" value="Debian 12"/>'
    '<property name="bed" value="{bed}"/></properties>'
)


def results(folder: Path, *cases: str) -> list[Path]:
    file = folder / "e2e.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return [file]


def story(slurm: str, bed: str = "local", end: str = "") -> str:
    return f'<testcase classname="tests.e2e.test_resume" name="t">{_ON.format(slurm=slurm, bed=bed)}{end}</testcase>'


def contract(provider: str, end: str = "") -> str:
    return f'<testcase classname="tests.contract.test_provider_{provider}" name="t">{end}</testcase>'


def test_each_cluster_has_a_row_with_what_passed_of_what_ran(tmp_path: Path) -> None:
    files = results(
        tmp_path,
        story("22.05.8"),
        story("22.05.8", end="<failure/>"),
        story("22.05.8", end="<skipped/>"),
        story("24.11.5", bed="docker"),
    )
    assert table(list(cases_in(files))).splitlines()[2:4] == [
        "| 22.05.8 | Debian 12 | local | 1 of 2 |",
        "| 24.11.5 | Debian 12 | docker | 1 of 1 |",
    ]


def test_a_provider_is_named_when_its_whole_contract_passed_and_fakes_never_are(tmp_path: Path) -> None:
    files = results(
        tmp_path,
        story("22.05.8"),
        contract("static"),
        contract("ec2"),
        contract("ec2", end="<failure/>"),
        contract("power", end="<skipped/>"),
        contract("fake"),
    )
    assert table(list(cases_in(files))).splitlines()[-1] == "Providers whose contract suite passed: `static`."


def test_without_a_result_no_table_is_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="make test-all"):
        table(list(cases_in(results(tmp_path, contract("static")))))


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = f"a\n{BEGIN}\nold\n{END}\nb\n"
    assert filled(page, "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n"
    with pytest.raises(ValueError, match="has no"):
        filled("a", "new")


def test_the_readme_has_the_place_for_it() -> None:
    assert filled(Path("README.md").read_text(), "new")
