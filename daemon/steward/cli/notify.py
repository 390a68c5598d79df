"""`steward notify`: the channels that report events to people, and tests of them."""

import click

from steward.cli.context import Context, print_json, with_json
from steward.cli.show import line, listed, when


@click.group()
def notify() -> None:
    """Notifications of events: webhooks, mails and commands."""


@notify.command("list")
@with_json
def list_(context: Context) -> None:
    """List every channel, and how its last message went."""
    found = context.client().array("/v1/notify")
    rows = (
        (
            one["name"],
            one["kind"],
            ", ".join(one["levels"]),
            ", ".join(one["kinds"]) or "all",
            ", ".join(one["groups"]) or "all",
            one["queued"],
            when(one["last_sent"]),
            one["last_error"],
        )
        for one in found
    )
    columns = ("CHANNEL", "KIND", "LEVELS", "EVENTS", "GROUPS", "WAITING", "LAST SENT", "LAST ERROR")
    listed(context, found, columns, rows, empty="No channel is configured: see [[notify]] in docs/config.md.")


@notify.command()
@click.argument("channel", required=False, default="")
@with_json
def test(context: Context, channel: str) -> None:
    """Send a test message by one channel, or by all. Exit status 1 when one could not be sent."""
    answer = context.client().test_channels(channel)
    if context.as_json:
        print_json(answer)
    for name, error in {} if context.as_json else answer["channels"].items():
        line(f"{name}: {error or 'sent'}", "bold red" if error else "green")
    if any(answer["channels"].values()):
        raise click.exceptions.Exit(1)
