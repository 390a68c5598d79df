"""Slurm through steward-slurm: what it answers is believed in its exact form only; else the commands are asked."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.library import Library
from steward.adapters.slurm.record_form import JOB, NODE
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.ports import Retryable
from tests.fakes import reader_lines
from tests.fakes.reader_lines import answer, job_line, node_line, scontrol_line

N1, N2 = NodeName("n1"), NodeName("n2")
SCONTROL = f"""#!/bin/sh
case "$*" in
    --version) echo "slurm 22.05.8" ;;
    *config*) echo "SlurmdPort              = 6818" ;;
    *node*) echo "{scontrol_line()}" ;;
esac
"""


Answers = Mapping[str, str | list[str]]


def program(answers: Answers) -> tuple[str, ...]:
    """A program that says this to questions that begin so (of a list one by one); the first one that fits counts."""
    code = (
        "import sys\n"
        f"answers = {dict(answers)!r}\n"
        "for line in sys.stdin:\n"
        "    told = next((a for q, a in answers.items() if line.startswith(q)), 'no\\n')\n"
        "    told = told.pop(0) if isinstance(told, list) else told\n"
        "    sys.stdout.write(told); sys.stdout.flush()"
    )
    return (sys.executable, "-I", "-S", "-c", code)


@contextmanager
def slurm(answers: Answers | tuple[str, ...], *, few_s: float = 30.0) -> Iterator[CommandLineSlurm]:
    argv = answers if isinstance(answers, tuple) else program(answers)
    with closing(Library(argv=argv, few_s=few_s, all_s=few_s)) as library:
        yield CommandLineSlurm(library=library)


@pytest.fixture(autouse=True)
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that know one idle node and no job."""
    for name, text in (("scontrol", SCONTROL), ("squeue", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_nodes_and_jobs_are_read() -> None:
    told = {
        "nodes": reader_lines.nodes(node_line(), node_line(name="n2", state="DOWN+DRAIN", reason="a\tb\\", port=7)),
        "jobs": reader_lines.jobs(
            job_line(name="one\ntwo\udcff", array_job_id=7, array_tasks="0-9%2", state="PENDING")
        ),
    }
    with slurm(told) as port:
        nodes, jobs = port.nodes(), port.jobs()

    assert (nodes[N2].base, nodes[N2].flags, nodes[N2].port) == (NodeBase.DOWN, frozenset({"DRAIN"}), 7)
    reason = nodes[N2].reason
    assert reason is not None
    assert reason.text == "a\tb\\"
    job = jobs[JobId(7)]
    assert (job.name, job.waiting_tasks, job.most_tasks) == ("one\ntwo\N{REPLACEMENT CHARACTER}", 10, 2)
    assert (job.state, job.array_job_id, job.array_task) == (JobState.PENDING, 7, None)


def test_a_record_that_did_not_change_is_the_same_object_in_whole_and_small_looks() -> None:
    one, other = node_line(), node_line(name="n2")
    told = {
        "nodes": reader_lines.nodes(one, other),
        "node n1": answer("node", NODE, one),
        "node n2": answer("node", NODE, node_line(name="n2", state="DOWN")),
        "jobs": reader_lines.jobs(job_line()),
        "job 7": answer("job", JOB, job_line()),
        "on n1": answer("on", JOB, job_line()),
    }
    with slurm(told) as port:
        nodes, jobs = port.nodes(), port.jobs()
        assert port.nodes([N1])[N1] is port.nodes()[N1] is nodes[N1]
        assert port.nodes([N2])[N2].is_down
        assert port.jobs([JobId(7)])[JobId(7)] is port.jobs([], on=[N1])[JobId(7)] is jobs[JobId(7)]


def test_where_nothing_changed_since_the_stamp_of_the_last_look_its_records_are_told() -> None:
    told = {
        "nodes -": reader_lines.nodes(node_line()),
        "nodes 70.71": "nodes 70.71 same\n",
        "jobs -": reader_lines.jobs(job_line()),
        "jobs 70": "jobs 70 same\n",
    }
    with slurm(told) as port:
        assert port.nodes() is port.nodes()
        assert port.jobs() is port.jobs()


MANY = [job_line(id=id) for id in range(100, 150)]
WAITS = {"state": "PENDING", "nodes": "", "reason": "BeginTime"}


def test_why_a_job_waits_is_asked_for_where_slurm_says_that_nothing_changed() -> None:
    """Slurm's scheduler changes that without word that it changed."""
    told = {
        "jobs -": reader_lines.jobs(job_line(), job_line(id=8, **WAITS), *MANY),
        "jobs 70": "jobs 70 same\n",
        "job 8": answer("job", JOB, job_line(id=8, **{**WAITS, "reason": "Resources"})),
    }
    with slurm(told) as port:
        first, then = port.jobs(), port.jobs()
        assert (first[JobId(8)].reason, then[JobId(8)].reason) == ("BeginTime", "Resources")
        assert then[JobId(7)] is first[JobId(7)]
        assert port.jobs() is then


def test_a_job_that_waited_and_is_gone_has_all_jobs_read_anew() -> None:
    told: Answers = {
        "jobs -": [reader_lines.jobs(job_line(), job_line(id=8, **WAITS), *MANY), reader_lines.jobs(job_line())],
        "jobs 70": "jobs 70 same\n",
        "job 8": answer("job", JOB),
    }
    with slurm(told) as port:
        assert 8 in port.jobs()
        assert port.jobs().keys() == {7}


def test_where_many_jobs_of_a_queue_wait_all_are_read_anew() -> None:
    first, then = (job_line(id=8, **{**WAITS, "reason": why}) for why in ("BeginTime", "Resources"))
    with slurm({"jobs -": [reader_lines.jobs(job_line(), one) for one in (first, then)]}) as port:
        assert [port.jobs()[JobId(8)].reason for _ in range(2)] == ["BeginTime", "Resources"]


ODD = [
    "",
    "no\n",
    "no 1900\n",
    "\n",
    "x" * 5000,
    "nodes 70.71 same\n",
    "jobs 70 1 1 name\n\n",
    reader_lines.nodes(node_line())[:-1] + "\0",
    reader_lines.nodes(node_line(), stamp="0.0"),
    reader_lines.nodes(node_line()).replace("nodes", "node", 1),
    reader_lines.nodes(node_line()).replace("name,state", "state,name"),
    reader_lines.nodes(node_line()).replace(" 1 ", " 2 ", 1),
    reader_lines.nodes(node_line().replace("IDLE", "IDLE;")),
    reader_lines.nodes(node_line().replace("main", "ma\\in")),
    reader_lines.nodes(node_line().replace("500", "5e2")),
    reader_lines.nodes(node_line() + "\t"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_answer_of_another_form_is_not_believed_and_the_commands_are_asked(odd: str) -> None:
    with slurm({"node": odd}, few_s=1.0) as port:
        for _ in range(2):
            assert port.nodes()[N1].is_schedulable
            assert port.nodes([N1, N2]) == {N1: port.nodes()[N1]}


@pytest.mark.parametrize(
    "argv", [("/bin/true",), ("/nonexistent",), ("/bin/sleep", "60"), ("/bin/sh", "-c", "read x; kill -SEGV $$")]
)
def test_a_program_that_ends_crashes_hangs_or_is_not_there_is_no_harm(argv: tuple[str, ...]) -> None:
    with slurm(argv, few_s=0.3) as port:
        assert port.nodes()[N1].is_schedulable
        assert port.jobs() == {}
        assert "steward-slurm failed" in port.describe()
        assert "see neither memory asked for each CPU nor a list of node counts" in port.describe()


def test_one_that_answers_lacks_nothing() -> None:
    with slurm({"node": reader_lines.nodes()}) as port:
        port.nodes()
        assert "quotas" not in port.describe()


def test_one_that_failed_is_asked_again_soon_and_ever_more_rarely(tmp_path: Path) -> None:
    """Each start of the program leaves a letter; the sixth answers."""
    starts, now = tmp_path / "starts", 0.0
    code = (
        f"import sys\nwith open({str(starts)!r}, 'a+') as file: count = file.write('x') + file.tell() - 1\n"
        f"for _ in sys.stdin: print({reader_lines.nodes()!r} if count == 6 else 'no\\n', end='', flush=True)"
    )
    argv = (sys.executable, "-I", "-S", "-c", code)
    with closing(Library(argv=argv, few_s=30.0, all_s=30.0, monotonic=lambda: now)) as library:
        begun = list[float]()
        while library.nodes() is None:
            if starts.stat().st_size > len(begun):
                begun.append(now)
                assert "steward-slurm failed" in library.problem()
            now += 1.0
        assert library.problem() == ""
    assert begun == [0.0, 5.0, 15.0, 35.0, 75.0]


@pytest.mark.parametrize(("said", "nodes"), [("No nodes in the system", True), ("", False)])
def test_no_node_at_all_is_believed_when_slurm_says_so(tmp_path: Path, said: str, nodes: bool) -> None:
    """Where nodes register by themselves that is a real answer; an empty one alone is none."""
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\necho '{said}'\n")
    with slurm({"nodes": reader_lines.nodes()}) as port:
        if nodes:
            assert port.nodes() == {}
        else:
            with pytest.raises(Retryable, match="not believed"):
                port.nodes()


def test_by_text_a_node_with_an_odd_line_is_unknown_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text(SCONTROL.replace('AllocTRES="', 'AllocTRES=\nNodeName=n2 Arch=x State=IDLE"'))
    port = CommandLineSlurm()
    assert port.nodes()[N1].base is NodeBase.IDLE
    assert port.nodes()[N2].base is NodeBase.UNKNOWN
