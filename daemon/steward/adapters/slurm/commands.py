"""Run Slurm's commands with the same limits and environment, and raise their failures by meaning."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from steward.adapters.process import Completed, Failed, run
from steward.adapters.slurm import versions
from steward.adapters.slurm.versions import SlurmRelease
from steward.ports import Permanent, PortError, Retryable, Stale, Unsent

MAX_BYTES = 512 << 20
"""The longest answer."""
_HEAVY_SHARE = 0.5
"""The share of a limit above which `heavy` reports an answer."""
_PLAIN_ENV = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0", "SLURM_CLUSTERS": "", "SLURM_TIME_FORMAT": ""}
"""Answers for programs, about this cluster: not as a person has set them to be shown."""
_LOCAL = {"SCONTROL_LOCAL": "1", "SINFO_LOCAL": "1", "SQUEUE_LOCAL": "1"}
"""Not about a federation, which `FedParameters=fed_display` shows by default."""
_VIEWS = ("SCONTROL_", "SINFO_", "SQUEUE_")
_NO_ENV: Mapping[str, str] = {}
_PLAIN = re.compile(r"[A-Za-z0-9_=:,.+\[\]-]+")
"""A word that scontrol takes unchanged from a line of its input."""
_AT_ONCE = 1000
"""The most commands for one scontrol."""
_NO_NODE = re.compile(r"^Node \S+ not found$\n?", re.MULTILINE)


class SlurmCommands:
    """Slurm's commands, run with one environment and the same limits. Safe to call from several threads.

    Every command may take `timeout_s` seconds and answer with `max_bytes`.
    """

    def __init__(self, *, conf: str, timeout_s: float, max_bytes: int) -> None:
        views = {name: "" for name in os.environ if name.startswith(_VIEWS)}
        self._env = {**views, **_PLAIN_ENV, **_LOCAL, **({"SLURM_CONF": conf} if conf else {})}
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._version: SlurmRelease | None = None
        self._heavy: dict[tuple[str, ...], str] = {}

    def version(self) -> SlurmRelease:
        """Return the version of Slurm."""
        version = self._version  # another thread may reset it to None at any time
        if version is None:
            version = self._version = versions.parse(self.run("scontrol", "--version").text)
        return version

    def heavy(self) -> list[str]:
        """Return a sentence for each whole look whose last answer used more than half of a limit."""
        return [self._heavy[argv] for argv in sorted(self._heavy.copy())]

    def read(self, *argv: str) -> str:
        """Return the answer of a command."""
        return self._whole_answer(*argv).text

    def some_nodes(self, *argv: str, env: Mapping[str, str]) -> str:
        """Return Slurm's text on the named nodes, without unknown ones."""
        try:
            return self._whole_answer(*argv, env=env).text
        except PortError as error:
            done = _completed(error)
            if done is None or done.truncated or not _NO_NODE.search(f"{done.error_text}\n{done.text}"):
                raise
            if _NO_NODE.sub("", done.error_text):
                raise
            return _NO_NODE.sub("", done.text)

    def look(self, *argv: str, env: Mapping[str, str] = _NO_ENV) -> str:
        """Return the answer of a repeated whole look; `heavy` reports it if it comes near to the limits."""
        answer = self._whole_answer(*argv, env=env)
        size, took = len(answer.stdout), answer.seconds
        if size > _HEAVY_SHARE * self._max_bytes or took > _HEAVY_SHARE * self._timeout_s:
            much = f"{size / 1e6:.1f} MB of {self._max_bytes / 1e6:.1f} MB, {took:.1f} s of {self._timeout_s:g} s"
            self._heavy[argv] = f"the last answer of `{' '.join(argv)}` had {much}"
        else:
            self._heavy.pop(argv, None)
        return answer.text

    def write(self, *words: str, timeout_s: float | None = None) -> None:
        """Run scontrol. Raises by the meaning of its refusal."""
        self.run("scontrol", *words, timeout_s=timeout_s)

    def write_all(self, commands: Iterable[Sequence[str]]) -> None:
        """Run scontrol for each list of words, also after a refused one.

        Raises as `write` does, for the first refusal; at once if slurmctld does not answer.
        """
        every = list(commands)
        # scontrol reads a thousand commands from its input in the time of twenty that are started (22.05: 0.9 ms each
        # instead of 3 to 20)
        is_plain = all(_PLAIN.fullmatch(word) for words in every for word in words)
        size = _AT_ONCE if is_plain else 1
        refused: list[PortError] = []
        for first in range(0, len(every), size):
            try:
                self._write_block(every[first : first + size])
            except PortError as error:
                if not _is_answer(error):
                    raise
                refused = refused or [error]
        if refused:
            raise refused.pop()

    def _write_block(self, commands: Sequence[Sequence[str]]) -> None:
        """Run one scontrol for these commands; several must be of plain words. Raises for the first refusal."""
        if len(commands) == 1:
            self.write(*commands[0])
            return
        done = self.run("scontrol", input="".join(f"{' '.join(words)}\n" for words in commands).encode())
        if done.error_text:
            raise refusal(Failed(f"{len(commands)} commands for scontrol: {done.line()}", done))

    def run(
        self,
        *argv: str,
        input: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str] = _NO_ENV,
        enough: str = "",
    ) -> Completed:
        """Run a command, to its end or until it says `enough`. Raises by the meaning of its failure."""
        limit_s = timeout_s or self._timeout_s
        if (conf := self._env.get("SLURM_CONF", "")) and not Path(conf).is_file():
            # Slurm's commands would wait for such a file until they are killed.
            raise Retryable(f"{conf} is not there: name Slurm's own slurm.conf in cluster.slurm_conf")
        try:
            whole = {**self._env, **env}
            return run(argv, timeout_s=limit_s, env=whole, input=input, max_bytes=self._max_bytes, enough=enough)
        except Failed as failed:
            # Keep no reference to the exception: its traceback would hold the caller's picture.
            if (kind := meaning(failed)) is not Retryable:
                raise kind(str(failed)) from failed
            raise

    def _whole_answer(self, *argv: str, env: Mapping[str, str] = _NO_ENV) -> Completed:
        """Return the whole answer of a command. Raises Retryable if it is too long."""
        try:
            answer = self.run(*argv, env=env)
            if answer.truncated:
                raise Retryable(f"the answer of `{' '.join(argv)}` is too long: more than {self._max_bytes} bytes")
        except Retryable:
            self._version = None  # Slurm may just have been upgraded: ask for its version again next time
            raise
        return answer


# The meaning of Slurm's refusals. Every text of scontrol that Steward understands is in this one table.

# Texts of 22.05.8, 24.11.5 and 26.05.5 (slurm_errno's table); the first that matches counts.
_NO_ANSWER: tuple[tuple[str, type[PortError]], ...] = (
    (r"Transport endpoint is not connected|Socket timed out|Connection (refused|reset|timed out)", Retryable),
    (r"Unable to contact slurm controller \(connect failure\)", Unsent),
    (r"Unable to contact slurm controller", Retryable),
    (r"Slurm backup controller in standby|in standby mode", Retryable),
    (r"Zero Bytes were transmitted", Retryable),
)
"""Texts for which no slurmctld answered."""
_TABLE: tuple[tuple[str, type[PortError]], ...] = (
    (r"Invalid job id specified", Stale),
    (r"Job is pending execution", Stale),
    (r"Job is no longer pending execution", Stale),
    (r"Job/step already completing or completed", Stale),
    (r"Job has already finished", Stale),
    (r"Invalid node state (specified|transition)", Stale),
    (r"Invalid node name", Stale),
    (r"Invalid partition name specified", Stale),
    (r"Requested reservation is invalid|Requested reservation not found", Stale),
    (r"Duplicate reservation name", Stale),
    (r"Requested reservation is in use|Partition is in use", Retryable),
    (r"Requested nodes are busy", Retryable),
    (r"Job update not available right now", Retryable),
    *_NO_ANSWER,
    (r"Resource temporarily unavailable|Temporarily unable", Retryable),
    (r"MUNGE|[Aa]uthentication|credential", Retryable),
    # texts of sacctmgr
    (r"Job\(s\) active, cancel job|have these as their Default QOS|You gave a bad qos", Stale),
    (r"no TRES known by type|Unknown (option|condition)|Invalid (qos|value)|You must be a (super|coord)", Permanent),
    (r"Requested operation is presently disabled", Permanent),
    (r"Access/permission denied|Invalid user id", Permanent),
    (r"You must specify a reason|Invalid input|Invalid job array specification", Permanent),
    (r"unrecognized option", Permanent),
    (r"fatal: Could not establish a configuration source|Unable to process configuration", Permanent),
)
_UNCHANGED = re.compile(r"Nothing (modified|deleted|new added)|Request didn't affect anything|[Aa]lready exist")
"""sacctmgr's words if a change changes nothing, in 22.05, 24.11 and 26.05."""
_SILENT = re.compile("|".join(pattern for pattern, _ in _NO_ANSWER))
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in _TABLE)


def nothing_changed(failed: Failed) -> bool:
    """Return whether sacctmgr says that everything is as wanted already."""
    done = failed.completed
    return done is not None and _UNCHANGED.search(done.text + done.error_text) is not None


def _completed(error: BaseException | None) -> Completed | None:
    """Return how the failed command ended; None if the error does not come from a command."""
    if isinstance(error, Failed):
        return error.completed
    return _completed(error.__cause__) if error is not None else None


def _is_answer(error: PortError) -> bool:
    """Return whether slurmctld answered the failed command, which was not ended for its time limit."""
    done = _completed(error)
    return done is not None and done.returncode >= 0 and not _SILENT.search(f"{done.error_text}\n{done.text}")


def refusal(failed: Failed) -> PortError:
    """Return the failed command as the error that it means; Retryable if its words are unknown."""
    if (kind := meaning(failed)) is Retryable:
        return failed
    error = kind(str(failed))
    error.__cause__ = failed
    return error


def meaning(failed: Failed) -> type[PortError]:
    """Return the kind of error that a failed command means; Retryable if its words are unknown."""
    if failed.completed is None:
        return Retryable
    text = f"{failed.completed.error_text}\n{failed.completed.text}"
    return next((kind for pattern, kind in _COMPILED if pattern.search(text)), Retryable)
