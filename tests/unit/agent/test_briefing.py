"""What a starting script or step of an opted-in job is told."""

import asyncio
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.shimline import MAX_LINE, OptedLine, ok_line
from steward.agent.briefing import MAX_FOLDERS, PATIENCE_S, Briefing, ResumeFactsCache
from steward.agent.job_folder import JobFolders
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts
from steward.model.resume_mode import ResumeMode
from tests.fakes.until import FACT_S

FACTS = ResumeFacts(
    uid=os.geteuid(),
    resumes=2,
    culprits=(NodeName("n3"),),
    excluded=(NodeName("n3"), NodeName("n4")),
    reason="a node failed",
    checkpoint="/ckpt/10",
    checkpoint_step=10,
    resumed="2 of 5, after n3 failed",
)


@dataclass
class Head:
    """Answers with what it knows; None: nothing."""

    facts: ResumeFacts | None = FACTS
    answers: bool = True
    after_s: float = 0.0
    away_since: float | None = None
    asked: list[Frame] = field(default_factory=list)
    past: ResumeFactsCache | None = None

    def post(self, frame: Frame) -> None:
        self.asked.append(frame)
        if self.answers and self.past is not None:
            asyncio.get_running_loop().call_later(self.after_s, self.past.hear, frame["job"], self.facts)


def line(restart: int = 0, attempt: int = 1) -> OptedLine:
    mode = ResumeMode.parse("1")
    return OptedLine(job=JobId(7), uid=os.geteuid(), mode=mode, restart=restart, attempt=attempt)


def words(
    head: Head,
    folder: Path,
    opted: OptedLine,
    *,
    warning: str = "",
    left: tuple[str, ...] = (),
    patience_s: float = PATIENCE_S,
) -> Mapping[str, str]:
    async def story() -> Mapping[str, str]:
        head.past = ResumeFactsCache(head, patience_s)
        return await Briefing(
            JobFolders(folder),
            head.past,
            Threads(1),
            warning=lambda: warning,
            left_behind=lambda job, uid, restart: left,
            folder_s=FACT_S,
        ).words(opted)

    told = dict(asyncio.run(story()))
    assert told.pop("python").endswith("/steward/job/on_path"), "in every answer"
    return told


def test_a_first_run_is_told_of_its_files_and_the_head_is_not_asked(tmp_path: Path) -> None:
    head = Head()
    assert words(head, tmp_path, line()) == {
        "progress_file": str(tmp_path / f"7-{os.geteuid()}" / "progress"),
        "stacks_file": str(tmp_path / f"7-{os.geteuid()}" / "stacks"),
        "resume_count": "0",
    }
    assert head.asked == []


def test_a_job_is_told_the_heads_warning_and_nothing_where_there_is_none(tmp_path: Path) -> None:
    assert words(Head(), tmp_path, line(), warning="resuming is off")["warning"] == "resuming is off"
    assert "warning" not in words(Head(), tmp_path, line())


@pytest.mark.parametrize("opted", [line(restart=1), line(attempt=2)])
def test_a_resumed_run_is_told_of_its_past(tmp_path: Path, opted: OptedLine) -> None:
    told = words(Head(), tmp_path, opted)
    assert {name: told[name] for name in told if not name.endswith("_file")} == {
        "resume_count": "2",
        "resumed": "2 of 5, after n3 failed",
        "last_checkpoint": "/ckpt/10",
        "last_step": "10",
        "resume_reason": "a node failed",
        "culprits": "n3",
        "excluded_nodes": "n3,n4",
    }


@pytest.mark.parametrize(("opted", "is_told"), [(line(), False), (line(restart=1), True), (line(attempt=2), True)])
def test_what_an_earlier_attempt_left_running_is_told_before_the_next_one_begins(
    tmp_path: Path, opted: OptedLine, is_told: bool
) -> None:
    told = words(Head(), tmp_path, opted, left=("12 redis-server", "13 python3"))
    assert told.get("left_behind") == ("12 redis-server, 13 python3" if is_told else None)


def test_a_head_that_must_look_first_where_the_job_runs_is_waited_for(tmp_path: Path) -> None:
    assert words(Head(after_s=0.6), tmp_path, line(restart=1))["resumed"] == "2 of 5, after n3 failed"


def test_a_head_that_is_away_is_hardly_waited_for(tmp_path: Path) -> None:
    head = Head(answers=False, away_since=1.0)
    assert words(head, tmp_path, line(restart=1), patience_s=math.inf)["resume_count"] == "1"


@pytest.mark.parametrize("head", [Head(answers=False), Head(facts=None)])
def test_without_the_heads_word_slurms_count_is_told(tmp_path: Path, head: Head) -> None:
    told = words(head, tmp_path, line(restart=3))
    assert told["resume_count"] == "3"
    assert "culprits" not in told


def test_another_users_past_is_not_told_to_who_calls_the_job_his(tmp_path: Path) -> None:
    told = words(Head(facts=replace(FACTS, uid=os.geteuid() + 1)), tmp_path, line(restart=1))
    assert {name: told[name] for name in told if not name.endswith("_file")} == {"resume_count": "1"}


def test_a_folder_that_cannot_be_made_holds_up_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert words(Head(), tmp_path / "file", line()) == {"resume_count": "0"}


def test_more_folders_than_jobs_fit_on_a_node_are_not_made(tmp_path: Path) -> None:
    for job in range(100, 100 + MAX_FOLDERS):
        (tmp_path / f"{job}-{os.geteuid()}").mkdir()
    assert words(Head(), tmp_path, line()) == {"resume_count": "0"}
    (tmp_path / f"100-{os.geteuid()}").rename(tmp_path / "100-65534")  # another user's are not counted
    assert "progress_file" in words(Head(), tmp_path, line())


def test_many_nodes_are_told_as_far_as_there_is_room(tmp_path: Path) -> None:
    names = tuple(NodeName(f"node-{number:04}") for number in range(200))
    facts = ResumeFacts(
        uid=os.geteuid(), resumes=1, culprits=names, excluded=names, reason="x" * 200, checkpoint="/" + "y" * 200
    )
    told = words(Head(facts=facts), tmp_path, line(restart=1))
    assert told["excluded_nodes"].startswith("node-0000,node-0001,")
    assert len(ok_line(told)) <= MAX_LINE
    assert b"resume_count=1 " in ok_line(told)


def test_one_question_serves_all_steps_that_start_together() -> None:
    async def story() -> None:
        head = Head()
        head.past = ResumeFactsCache(head)
        assert await asyncio.gather(*(head.past.of(JobId(7)) for _ in range(5))) == [FACTS] * 5
        assert head.asked == [{"t": "facts?", "job": 7}]

    asyncio.run(story())


def test_what_the_head_tells_with_its_answer_need_not_be_asked_for() -> None:
    async def story() -> None:
        head = Head(answers=False)
        head.past = ResumeFactsCache(head)
        head.past.hear(JobId(7), FACTS)
        assert await head.past.of(JobId(7)) == FACTS
        assert head.asked == []

    asyncio.run(story())


def test_one_users_processes_that_cannot_be_read_keep_no_other_user_from_his_files(tmp_path: Path) -> None:
    """Any user may say so often of a job that it begins again."""
    head, let_go = Head(), Event()

    async def story() -> list[Mapping[str, str]]:
        head.past = ResumeFactsCache(head)
        briefing = Briefing(
            JobFolders(tmp_path),
            head.past,
            Threads(1),
            left_behind=lambda job, uid, restart: (str(let_go.wait(FACT_S)),),
            folder_s=FACT_S,
        )
        told = await asyncio.gather(*(briefing.words(line(restart=1)) for _ in range(9)), briefing.words(line()))
        return list(told)

    told = asyncio.run(story())
    let_go.set()
    assert all("progress_file" in each for each in told)
