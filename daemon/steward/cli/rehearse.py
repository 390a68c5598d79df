"""`steward rehearse`: whether a script can be resumed, tried with faults of its own."""

import os
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from steward.cli.context import Context, context_for
from steward.client import HeadError
from steward.model.port_error import PortError
from steward.model.text import harmless, json_text
from steward.rehearse.own_job import JobLook, OwnJob, SubmitRefused, kill_wait_s, submit
from steward.rehearse.rehearsal import Rehearsal
from steward.rehearse.saves import FolderWatch, named_folders
from steward.rehearse.verdict import ResumeFinding, Weight, can_be_resumed, judge

_SPARE_MIN = 5
_SHOWN_FILES = 10
_MARKS = {
    Weight.BAD: ("WRONG", "red"),
    Weight.ADVICE: ("better", "yellow"),
    Weight.GOOD: ("right", "green"),
    Weight.UNKNOWN: ("unknown", "yellow"),
}
_VERDICTS = {
    True: "This script can be resumed: after each fault it went on from its checkpoint.",
    False: "This script cannot be resumed yet.",
    None: "It could not be told whether this script can be resumed.",
}
_INDENT = " " * 8
_WIDTH = 100
_STATUS = {True: 0, False: 1, None: 3}


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--minutes",
    type=click.IntRange(1, 240),
    default=10,
    show_default=True,
    help="The time for all runs, without the queue.",
)
@click.option(
    "--saves",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder of checkpoints; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; what happens meanwhile goes to stderr.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[SBATCH OPTIONS] SCRIPT [ARGUMENTS]")
@click.pass_context
def rehearse(
    context: click.Context, minutes: int, saves: tuple[Path, ...], as_json: bool, words: tuple[str, ...]
) -> None:
    """Try whether a script can be resumed.

    For training scripts, before the long run. Submits the script as `sbatch` does, waits until it has saved, kills all
    its processes, starts it again, tells it to end, and starts it once more. Then says where each run began, and what
    to change. Needs only your own rights; the job is cancelled at the end. The script writes where it always writes:
    if checkpoints of a real run are there, let it use another folder.

    Ends with 0 if the script can be resumed, 1 if not, 3 if that could not be told.
    """
    as_json = as_json or bool(context.parent and context.parent.params["as_json"])
    began = time.monotonic()

    def say(text: str) -> None:
        passed = int(time.monotonic() - began)
        click.echo(f"{passed // 60:3}:{passed % 60:02}  {harmless(text)}", err=as_json)

    script = _script_in(words)
    _end_on_signals()
    try:
        job = submit(words[1:] if words[0] == "sbatch" else words)
    except SubmitRefused as error:
        raise click.ClickException(harmless(str(error))) from None
    try:
        rehearsal = _prepared(job, script, words, saves, minutes, say)
        rehearsal.play()
        found = judge(rehearsal.runs, script, kill_wait_s())
    except SubmitRefused as error:
        raise click.ClickException(harmless(str(error))) from None
    finally:
        job.cancel()
    left = rehearsal.watch.left()
    if as_json:
        click.echo(
            json_text(
                {
                    "job": job.id,
                    "can_be_resumed": can_be_resumed(found),
                    "findings": [asdict(each) for each in found],
                    "files": [str(path) for path in left],
                },
                indent=2,
            )
        )
    else:
        _tell(found, left, rehearsal.watch.is_cut, job.id)
    context.exit(_STATUS[can_be_resumed(found)])


def _prepared(
    job: OwnJob, script: str, words: Sequence[str], saves: Sequence[Path], minutes: int, say: Callable[[str], None]
) -> Rehearsal:
    """Return the rehearsal of a job that was just submitted; its folders are noted as they are."""
    look = job.look()
    _shorten(job, look, minutes + _SPARE_MIN)
    work = Path(look.fields.get("WorkDir", os.getcwd()))
    named = named_folders("\n".join((script, *words)), os.environ)
    places = [path for path in (work, *(path.resolve() for path in saves), *named) if path.is_dir()]
    watch = FolderWatch(list(dict.fromkeys(places)), {path.resolve() for path in look.outputs})
    watch.begin()
    outputs = ", ".join(map(str, dict.fromkeys(look.outputs)))
    say(f"job {job.id} is submitted; it works in {work}, and its output is {outputs}")
    return Rehearsal(job, watch, 60.0 * minutes, say, _reported(job.id), looked=look)


def _shorten(job: OwnJob, look: JobLook, minutes: int) -> None:
    """Lower the time limit, if it is longer: the job is not to stay, whatever becomes of this command."""
    days, _, clock = look.fields.get("TimeLimit", "").rpartition("-")
    parts = clock.split(":")
    is_clock = len(parts) == 3 and all(part.isdigit() for part in parts)
    if is_clock and (int(days or 0) * 24 + int(parts[0])) * 60 + int(parts[1]) <= minutes:
        return
    job.shorten(minutes)


def _reported(job: int) -> Callable[[], str]:
    """Return a function that asks the head for the step that the job reported; it gives up where no head answers."""
    asked: list[Context] = []
    is_off = False

    def ask() -> str:
        nonlocal is_off
        if is_off:
            return ""
        try:
            if not asked:
                asked.append(context_for(None, None, False))
            lines = asked[0].quiet_client().explain_job(job)["lines"]
        except (HeadError, PortError, click.ClickException) as error:
            is_off = "no job" not in str(error).lower()
            return ""
        return next((str(line) for line in lines if "reported step" in line), "")

    return ask


def _script_in(words: Sequence[str]) -> str:
    """Return the text of the script among the words of sbatch; empty if there is none."""
    for word in words:
        path = Path(word)
        try:
            if path.is_file() and (text := path.read_bytes()[:1_000_000]).startswith(b"#!"):
                return text.decode("utf-8", "replace")
        except OSError:
            continue
    return ""


def _end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this command as Ctrl-C does: with its job cancelled."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def _tell(found: Sequence[ResumeFinding], left: Sequence[Path], is_cut: bool, job: int) -> None:
    is_good = can_be_resumed(found)
    click.echo("")
    click.secho(_VERDICTS[is_good], bold=True, fg={True: "green", False: "red", None: "yellow"}[is_good])
    for each in found:
        word, colour = _MARKS[each.weight]
        click.echo("")
        click.echo(click.style(f"{word:8}", fg=colour, bold=True) + _wrapped(each.text).lstrip())
        for line in each.shown_by:
            click.echo(f"          | {harmless(line)}")
        if each.change:
            click.echo(_wrapped(each.change))
    if is_cut:
        click.echo(
            "\nThere are too many files here to look at them all: name the folder of the checkpoints (--saves FOLDER)."
        )
    if left:
        click.echo(f"\nJob {job} is cancelled. It wrote these files; the long run would find them:")
        for path in left[:_SHOWN_FILES]:
            click.echo(f"  {harmless(shlex.quote(str(path)))}")
        if len(left) > _SHOWN_FILES:
            click.echo(f"  and {len(left) - _SHOWN_FILES} more")
    else:
        click.echo(f"\nJob {job} is cancelled.")


def _wrapped(text: str) -> str:
    return click.wrap_text(harmless(text), _WIDTH, _INDENT, _INDENT)
