"""Slurm's commands, run with the same limits and environment: failures come as what they mean."""

import re
from collections.abc import Mapping

from steward.adapters.process import Completed, Failed, run
from steward.adapters.slurm import versions
from steward.adapters.slurm.refusals import refusal
from steward.adapters.slurm.versions import Version
from steward.ports import PortError, Retryable

MAX_BYTES = 512 << 20
"""Of an answer. A job is 4 to 9 KB of it; on 22.05 each of its cores is 50 bytes more."""
_HEAVY = 0.5
_QUIET = {"TZ": "UTC", "SLURM_JSON": "compact", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
_NOTHING: Mapping[str, str] = {}
_NO_NODE = re.compile(r"^Node \S+ not found$\n?", re.MULTILINE)


class Commands:
    """Safe to call from several threads. Every command may take `timeout_s` seconds and answer with `max_bytes`."""

    def __init__(self, *, conf: str, timeout_s: float, max_bytes: int) -> None:
        self._env = {**_QUIET, **({"SLURM_CONF": conf} if conf else {})}
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._version: Version | None = None
        self._heavy: dict[tuple[str, ...], str] = {}

    def version(self) -> Version:
        version = self._version  # another thread may forget it any time
        if version is None:
            version = self._version = versions.parse(self.run("scontrol", "--version").text)
        return version

    def heavy(self) -> list[str]:
        """A sentence for each whole look whose last answer took more than half of what it may."""
        return [self._heavy[argv] for argv in sorted(self._heavy.copy())]

    def read(self, *argv: str) -> str:
        return self._answer(*argv).text

    def some_nodes(self, *argv: str, env: Mapping[str, str]) -> str:
        """What Slurm has of the nodes that are asked for by name."""
        try:
            return self._answer(*argv, env=env).text
        except PortError as error:
            failed = error if isinstance(error, Failed) else error.__cause__
            done = failed.completed if isinstance(failed, Failed) else None
            if done is None or done.truncated or not _NO_NODE.search(f"{done.error_text}\n{done.text}"):
                raise
            if _NO_NODE.sub("", done.error_text):
                raise
            return _NO_NODE.sub("", done.text)

    def look(self, *argv: str, env: Mapping[str, str] = _NOTHING) -> str:
        """Reads all of something, as is done again and again: `heavy` tells of it when it comes near to the limits."""
        answer = self._answer(*argv, env=env)
        size, took = len(answer.stdout), answer.seconds
        if size > _HEAVY * self._max_bytes or took > _HEAVY * self._timeout_s:
            much = f"{size / 1e6:.1f} MB of {self._max_bytes / 1e6:.1f} MB, {took:.1f} s of {self._timeout_s:g} s"
            self._heavy[argv] = f"the last answer of `{' '.join(argv)}` had {much}"
        else:
            self._heavy.pop(argv, None)
        return answer.text

    def write(self, *words: str, timeout_s: float | None = None) -> None:
        self.run("scontrol", *words, timeout_s=timeout_s)

    def run(
        self,
        *argv: str,
        input: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str] = _NOTHING,
    ) -> Completed:
        limit_s = timeout_s or self._timeout_s
        try:
            return run(argv, timeout_s=limit_s, env={**self._env, **env}, input=input, max_bytes=self._max_bytes)
        except Failed as failed:
            raise refusal(failed) from failed

    def _answer(self, *argv: str, env: Mapping[str, str] = _NOTHING) -> Completed:
        try:
            answer = self.run(*argv, env=env)
            if answer.truncated:
                raise Retryable(f"the answer of `{' '.join(argv)}` is too long: more than {self._max_bytes} bytes")
        except Retryable:
            self._version = None  # Slurm may just have been upgraded under us: look again next time
            raise
        return answer
