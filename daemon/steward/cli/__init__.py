"""`steward`: the commands of people.

Each command's module is imported when the command runs, so that `steward status` does not wait for the test bed.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import click

from steward import __version__
from steward.cli.examples import add_examples


@dataclass(frozen=True, slots=True)
class Late:
    """A command whose module is imported when the command runs.

    `target` is "module:attribute"; `help` and `section` are the command's line and section in the list of commands.
    """

    target: str
    help: str
    section: str = "Commands"

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class LateGroup(click.Group):
    """A group whose commands in `late` are imported when they run. The list of commands imports none of them."""

    late: Mapping[str, Late] = MappingProxyType({})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.late})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        late = self.late.get(cmd_name)
        return super().get_command(ctx, cmd_name) if late is None else late.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, in the order of `late`."""
        own = {name: command.get_short_help_str() for name, command in self.commands.items()}
        sections = {"Commands": list(own.items())} if own else {}
        for name, late in self.late.items():
            sections.setdefault(late.section, []).append((name, late.help))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(sorted(rows))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name.

        The error for an unknown word names the command that was probably meant, also a late one, which click cannot.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. Did you mean '{close[0]}'?", ctx) from error


_NO_HEAD = ("assess", "config", "init", "rehearse", "simulate")
_LOOK, _ACT, _SHARE, _SET_UP = "Look", "Repairs and jobs", "Machines, teams, elastic runs", "Set up"


class _Steward(LateGroup):
    late = MappingProxyType(
        {
            "status": Late("steward.cli.look:status", "Show the cluster at a glance.", _LOOK),
            "top": Late("steward.cli.top:top", "Show the cluster live, as the status page does.", _LOOK),
            "nodes": Late("steward.cli.look:nodes", "Every node: verdict, evidence, what is next.", _LOOK),
            "jobs": Late("steward.cli.jobs:jobs", "Jobs that asked to be resumed.", _LOOK),
            "cases": Late("steward.cli.look:cases", "Repairs of nodes.", _LOOK),
            "checks": Late("steward.cli.checks:checks", "Health checks and their results.", _LOOK),
            "explain": Late("steward.cli.look:explain", "Why a node, job or group is as it is.", _LOOK),
            "events": Late("steward.cli.look:events", "What happened, oldest first.", _LOOK),
            "report": Late("steward.cli.report:report", "What faults cost: where jobs' time went.", _LOOK),
            "lemons": Late("steward.cli.repair:lemons", "Hardware that fails again and again.", _LOOK),
            "plan": Late("steward.cli.look:plan", "What would be done if nothing held it.", _LOOK),
            "assess": Late("steward.cli.assess:assess", "What faults have cost so far.", _LOOK),
            "simulate": Late("steward.cli.simulate:simulate", "Try settings on a simulated cluster.", _LOOK),
            "rehearse": Late("steward.cli.rehearse:rehearse", "Try whether a script can be resumed.", _LOOK),
            "doctor": Late("steward.cli.look:doctor", "Check Steward and its connections.", _LOOK),
            "pause": Late("steward.cli.repair:pause", "Take no action on nodes for now.", _ACT),
            "resume-actions": Late("steward.cli.repair:resume_actions", "Act again; reset tripped breakers.", _ACT),
            "approve": Late("steward.cli.repair:approve", "Approve repairs that wait for a person.", _ACT),
            "breaker": Late("steward.cli.repair:breaker", "Tripped breakers: list, reset.", _ACT),
            "check": Late("steward.cli.check:check", "Arm or disarm a check; run a deep check.", _ACT),
            "notify": Late("steward.cli.notify:notify", "Notifications: list, test.", _ACT),
            "cluster": Late("steward.cli.cluster:cluster", "Apply or delete a whole cluster.", _SHARE),
            "group": Late("steward.cli.group:group", "Instance groups: list, scale, delete.", _SHARE),
            "node": Late("steward.cli.node:node", "Machines of groups: reboot, replace, delete.", _SHARE),
            "quota": Late("steward.cli.quota:quota", "Quotas of teams.", _SHARE),
            "elastic": Late("steward.cli.elastic:elastic", "Elastic runs: their sizes and growth.", _SHARE),
            "head": Late("steward.cli.head:head", "Two heads: hand over, move the state.", _SET_UP),
            "init": Late("steward.cli.init:init", "Read Slurm, write a first settings file.", _SET_UP),
            "config": Late("steward.cli.config:config", "Check and show the settings.", _SET_UP),
            "install": Late("steward.cli.install:install", "Install Steward on other hosts by ssh.", _SET_UP),
            "uninstall": Late("steward.cli.install:uninstall", "Remove Steward from hosts by ssh.", _SET_UP),
        }
    )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            add_examples(command, cmd_name)
        return command


@click.group(cls=_Steward, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "--url",
    default=None,
    help="Where the head is, or several URLs with commas (else STEWARD_URL, else as in the settings).",
)
@click.option("--config", "file", type=click.Path(path_type=Path), default=None, help="Settings file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def main(context: click.Context, url: str | None, file: Path | None, as_json: bool) -> None:
    """Find, take out and replace faulty Slurm nodes; bring jobs back after a fault."""
    if context.invoked_subcommand not in _NO_HEAD:
        from steward.cli.context import context_for  # noqa: PLC0415  # half of the start of `steward --help`

        context.obj = context_for(url, file, as_json)


add_examples(main, "")
