"""One of the two scripts: run as this user from the scripts' folder, within what is left of the setup's time."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from steward.adapters.fetch.budget import inside
from steward.adapters.node.setup_dir import SetupDir
from steward.adapters.proc import Process, end_all_below, look
from steward.adapters.process import Failed, run_to_file
from steward.lifecycle.output import Output
from steward.ports import Permanent

_SHELL = "/bin/bash"


class ScriptFailed(Permanent):
    """`status` is the exit status, negative for a signal."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Script:
    """`deadline` is on the monotonic clock; `limit_s` is the limit of the whole setup, for words."""

    def __init__(
        self,
        name: str,
        *,
        run: SetupDir,
        env: Mapping[str, str],
        output: Output,
        deadline: float,
        limit_s: float,
    ) -> None:
        self._name, self._run, self._env, self._output = name, run, env, output
        self._deadline, self._limit_s = deadline, limit_s
        self._noted = False

    def __call__(self) -> None:
        """Raises ScriptFailed for a status that is not 0, Permanent when it cannot be run or takes too long."""
        path = inside(self._run.scripts, self._name)
        if not path.is_file():
            raise Permanent(f"{self._name} is not among the scripts")
        self._output.say(f"Running {self._name}")
        status = self._run_it(_argv(path))
        self._output.follow()
        if status != 0:
            raise ScriptFailed(f"{self._name} ended with status {status}", status)

    def _run_it(self, argv: list[str]) -> int:
        left_s = self._deadline - time.monotonic()
        try:
            return run_to_file(
                argv,
                output=self._output.file,
                cwd=str(self._run.scripts),
                env=self._env,
                timeout_s=left_s,
                watch=self._watch,
            )
        except Failed as error:
            late = time.monotonic() >= self._deadline
            raise Permanent(f"execution timed out after {self._limit_s:g} s" if late else str(error)) from error
        finally:
            if time.monotonic() >= self._deadline:
                end_all_below(_me())

    def _watch(self, pid: int) -> None:
        if not self._noted and (seen := look(pid)) is not None:
            self._run.note_script(seen.process)
            self._noted = True
        self._output.follow()


def _me() -> Process:
    seen = look(os.getpid())
    assert seen is not None
    return seen.process


def _argv(path: Path) -> list[str]:
    """A script that does not name its interpreter is bash's. Objects in a bucket have no mode: it is given here."""
    path.chmod(0o755)
    with path.open("rb") as file:
        return [str(path)] if file.read(2) in (b"#!", b"\x7fE") else [_SHELL, str(path)]
