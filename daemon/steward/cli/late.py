"""Commands that are imported when somebody calls them: `steward status` waits for no test bed."""

import difflib
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click


class LateGroup(click.Group):
    """A group whose commands stand in `late` as name -> "module:attribute"; only a list with their help imports all."""

    late: Mapping[str, str] = MappingProxyType({})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.late})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.late:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.late[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A word that is no command is answered with the one that was probably meant; click knows no late ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. Did you mean {close[0]!r}?", ctx) from error
