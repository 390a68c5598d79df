"""`python -m tools.packages.manual FOLDER`: a manual page for `steward` and each of its commands, from their help."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from steward import __version__
from steward.cli import main


def pages() -> dict[str, str]:
    """File name -> text."""
    return {f"{name.replace(' ', '-')}.1": _page(name, command) for name, command in _commands("steward", main)}


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if command.hidden:
        return
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for word in command.list_commands(context):
            if inner := command.get_command(context, word):
                yield from _commands(f"{name} {word}", inner)


def _page(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.replace(" ", "-").upper()}" "1" "" "Steward {__version__}" "Steward"',
        ".SH NAME",
        f"{_safe(name.replace(' ', '-'))} \\- {_safe(command.get_short_help_str(120))}",
        ".SH SYNOPSIS",
        f".B {_safe(name)}",
        _safe(usage),
        ".SH DESCRIPTION",
        _safe((command.help or "").replace("\b", "")),
        *_table(
            "OPTIONS", [record for each in command.get_params(context) if (record := each.get_help_record(context))]
        ),
    ]
    if isinstance(command, click.Group):
        inner = [(word, command.get_command(context, word)) for word in command.list_commands(context)]
        lines += _table("COMMANDS", [(word, each.get_short_help_str(200)) for word, each in inner if each])
    return "\n".join(lines) + "\n"


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str] | None]:
    return [each.get_help_record(context) for each in command.get_params(context)]


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    return [f".SH {title}", *(line for left, right in rows for line in (".TP", f".B {_safe(left)}", _safe(right)))]


def _safe(text: str) -> str:
    """As roff takes it literally: no line begins with a control character."""
    clean = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in clean.splitlines())


def write(folder: Path) -> None:
    for name, text in pages().items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
