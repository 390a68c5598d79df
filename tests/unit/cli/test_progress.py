"""What is shown while the cluster works."""

from collections.abc import Callable

import click
import pytest

from steward.cli.capacity import ProgressView, follow
from steward.client import HeadError, OperationError, Unreachable

COLUMNS = ("GROUP", "CURRENT")


def looks(*story: ProgressView | BaseException) -> Callable[[], ProgressView]:
    told = iter(story)

    def look() -> ProgressView:
        sight = next(told)
        if isinstance(sight, BaseException):
            raise sight
        return sight

    return look


def at(count: int, *, over: bool = False, failed: str = "") -> ProgressView:
    return ProgressView(rows=[("workers", str(count))], is_over=over, failed=failed)


def test_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    follow(looks(at(1), at(1), at(2), at(2, over=True)), COLUMNS, every_s=0)
    assert capsys.readouterr().out == "workers  1\nworkers  2\n"


@pytest.mark.parametrize(
    "hindered", [Unreachable("it restarts"), OperationError("ThrottlingException", "Rate exceeded")]
)
def test_a_head_that_cannot_now_is_waited_for(capsys: pytest.CaptureFixture[str], hindered: HeadError) -> None:
    follow(looks(at(1), hindered, at(2, over=True)), COLUMNS, every_s=0)
    assert capsys.readouterr().out == "workers  1\nworkers  2\n"


def test_what_cannot_be_any_more_is_an_error() -> None:
    with pytest.raises(HeadError, match="rolled back"):
        follow(looks(at(1), at(1, failed="rolled back")), COLUMNS, every_s=0)


def test_what_is_refused_ends_the_looking() -> None:
    with pytest.raises(OperationError, match="not found"):
        follow(looks(at(1), OperationError("ResourceNotFound", "not found")), COLUMNS, every_s=0)


def test_an_interrupt_ends_the_looking_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as ended:
        follow(looks(at(1), KeyboardInterrupt()), COLUMNS, every_s=0)
    assert ended.value.exit_code == 130
    assert "the work goes on" in capsys.readouterr().out
