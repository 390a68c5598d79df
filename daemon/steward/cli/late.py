"""Commands that are imported when somebody calls them: `steward status` waits for no test bed."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click


class LateGroup(click.Group):
    """Its commands stand in `late` as name -> "module:attribute"; only a list of them with their help imports all."""

    late: Mapping[str, str] = MappingProxyType({})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.late})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.late:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.late[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        return command if isinstance(command, click.Command) else None
