"""`steward head`: the heads of a cluster with two of them."""

from importlib import import_module
from pathlib import Path

import click

from steward.cli.context import Context, with_json
from steward.cli.settings_option import file_option, read_settings
from steward.cli.show import print_done
from steward.ports import PortError


@click.group()
def head() -> None:
    """Two heads: which one leads, and the state that they share."""


@head.command()
@with_json
def handover(context: Context) -> None:
    """Let another head lead.

    Without a gap; before maintenance of the host of the head that leads.
    """
    answer = context.client().hand_over()
    print_done(context, answer, f"The lead goes to {' or '.join(answer['to'])}; `steward status` shows it.")


@head.command("move-state")
@click.option("--from", "source", type=click.Path(path_type=Path), help="SQLite file (else steward.db of state_dir).")
@file_option("Settings file.")
@with_json
def move_state(context: Context, source: Path | None, file: Path | None) -> None:
    """Copy a stopped head's state to the shared database.

    From its SQLite file, which stays as it is, into `head.database`: all or nothing. Run it as SlurmUser.
    """
    try:
        counts = import_module("steward.head.move_state").move_state(read_settings(file), source)
    except PortError as error:
        raise click.ClickException(str(error)) from error
    told = ", ".join(f"{count} of {name}" for name, count in counts.items())
    print_done(context, counts, f"Moved, counted and compared: {told} rows. Start stewardd on both hosts.")
