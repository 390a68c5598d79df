"""`steward`: what people type. Its parts are imported when somebody calls them: `steward status` waits for no test
bed."""

import difflib
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import click

from steward import __version__
from steward.cli.context import context_for


class LateGroup(click.Group):
    """A group whose commands stand in `late` as name -> "module:attribute"; only a list with their help imports all.
    Those whose package is not installed are not there."""

    late: Mapping[str, str] = MappingProxyType({})

    def list_commands(self, ctx: click.Context) -> list[str]:
        here = (name for name, target in self.late.items() if _is_installed(target))
        return sorted({*super().list_commands(ctx), *here})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.late:
            return super().get_command(ctx, cmd_name)
        if not _is_installed(self.late[cmd_name]):
            raise click.UsageError(f"{cmd_name!r} is no part of the packages: use a clone of the sources", ctx)
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


def _is_installed(target: str) -> bool:
    """Whether the folder that the module is in is there: `testbed` and `demo` come with the sources alone."""
    return find_spec(target.partition(":")[0].rpartition(".")[0]) is not None


_NO_HEAD = ("config", "init", "testbed", "demo")


class _Steward(LateGroup):
    late = MappingProxyType(
        {
            "approve": "steward.cli.repair:approve",
            "breaker": "steward.cli.repair:breaker",
            "cases": "steward.cli.look:cases",
            "check": "steward.cli.check:check",
            "checks": "steward.cli.check:checks",
            "cluster": "steward.cli.cluster:cluster",
            "config": "steward.cli.config:config",
            "demo": "steward.demo.command:demo",
            "doctor": "steward.cli.look:doctor",
            "elastic": "steward.cli.jobs:elastic",
            "events": "steward.cli.look:events",
            "explain": "steward.cli.look:explain",
            "group": "steward.cli.group:group",
            "init": "steward.cli.config:init",
            "install": "steward.cli.install:install",
            "jobs": "steward.cli.jobs:jobs",
            "lemons": "steward.cli.repair:lemons",
            "node": "steward.cli.node:node",
            "nodes": "steward.cli.look:nodes",
            "notify": "steward.cli.notify:notify",
            "pause": "steward.cli.repair:pause",
            "plan": "steward.cli.look:plan",
            "quota": "steward.cli.quota:quota",
            "report": "steward.cli.report:report",
            "resume-actions": "steward.cli.repair:resume_actions",
            "status": "steward.cli.look:status",
            "testbed": "steward.testbed.cli:testbed",
            "top": "steward.cli.top:top",
            "uninstall": "steward.cli.install:uninstall",
        }
    )


@click.group(cls=_Steward, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("--url", default=None, help="Where the head is (else STEWARD_URL, else head.http of the settings).")
@click.option("--config", "file", type=click.Path(path_type=Path), default=None, help="Settings file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def main(context: click.Context, url: str | None, file: Path | None, as_json: bool) -> None:
    """Find, take out and replace faulty Slurm nodes; bring jobs back after a fault."""
    if context.invoked_subcommand not in _NO_HEAD:
        context.obj = context_for(url, file, as_json)
