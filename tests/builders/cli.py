"""The command `steward`, run in this process against an API that a test serves."""

from collections.abc import Callable

from click import Command
from click.testing import CliRunner, Result

from steward.cli import main
from steward.cli.context import Context
from steward.client import Client
from tests.fakes.api_bench import ApiBench


def steward(api: ApiBench, *words: str) -> Result:
    """Run `steward --url API WORDS`; the result has its output and exit status."""
    return CliRunner().invoke(main, ["--url", api.url, *words])


Run = Callable[..., Result]
"""Runs a command as root: `run(command, *words, answer="")`, with `answer` on its standard input."""


def as_root(api: ApiBench) -> Run:
    """A `Run` whose client proves itself with the bench's munged."""

    class BenchContext(Context):
        def client(self) -> Client:
            return api.client()

    def invoke(command: Command, *words: str, answer: str = "") -> Result:
        context = BenchContext(url=api.url, as_json=False, munge_socket="")
        return CliRunner().invoke(command, words, obj=context, input=answer)

    return invoke
