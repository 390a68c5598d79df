"""The rule against resumes that bring no new checkpoint."""

from steward.model.resume_policy import ResumePolicy
from steward.policy.job.options import resume_facts
from tests.builders.picture import T0, Picture
from tests.builders.resumed import J, fails_again, memory, opted, rules, runs_again, saves


def story(*steps: int | None) -> Picture:
    """One run after the other fails, each with this newest checkpoint."""
    picture = saves(opted("any:9"), steps[0])
    for number, step in enumerate(steps):
        picture = fails_again(saves(picture, step), number)
        if number + 1 < len(steps):
            picture = runs_again(picture)
    return picture


def test_two_resumes_in_a_row_without_a_new_checkpoint_stop_the_job() -> None:
    assert rules(story(10, 10, 10)) == ["resume.any", "resume.any", "resume.no_progress"]


def test_a_new_checkpoint_in_between_is_progress() -> None:
    assert rules(story(10, 10, 20, 20)) == ["resume.any"] * 4


def test_a_job_whose_checkpoints_are_not_known_is_not_stopped_for_want_of_progress() -> None:
    assert rules(story(None, None, None)) == ["resume.any"] * 3


def stages(*steps: int) -> Picture:
    """One run after the other fails, each a minute after it wrote a checkpoint of this step; before that the job had
    a first stage with many more steps."""
    picture = saves(opted("any:9"), 10_000, T0).then(60.0)
    for number, step in enumerate(steps):
        picture = fails_again(saves(picture, step, picture.now).then(60.0), number)
        if number + 1 < len(steps):
            picture = runs_again(picture)
    return picture


def test_a_job_whose_steps_begin_again_gets_the_last_checkpoint_and_makes_progress() -> None:
    second = stages(300, 500, 700)
    assert rules(second) == ["resume.any"] * 3
    facts = resume_facts(J, second.memory, ResumePolicy())
    assert facts is not None
    assert facts.checkpoint_step == 700


def test_a_job_that_goes_back_and_gets_no_further_than_there_makes_none() -> None:
    assert rules(stages(300, 300, 300)) == ["resume.any", "resume.any", "resume.no_progress"]


def test_the_same_checkpoint_told_anew_is_no_later_one() -> None:
    picture = saves(opted("1"), 40, T0).then(1.0)
    assert memory(saves(picture, 40, T0 + 0.5)).saved == memory(picture).saved


def test_the_newest_checkpoint_is_remembered_when_its_node_is_gone() -> None:
    picture = saves(opted("1"), 40).then(1.0)
    assert picture.then(0.1).agent("n1", progress=()).plan().memory.jobs[J].saved == memory(picture).saved
    assert memory(picture).saved is not None
