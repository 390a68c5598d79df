"""What a starting script or step of an opted-in job is told: where its files are, and the job's past."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from steward.adapters.offload import Threads
from steward.adapters.wire.shimline import OptedLine
from steward.agent.job_folder import JobFolders
from steward.agent.past import Past
from steward.model.job_report import ResumeFacts
from steward.ports import PortError

log = logging.getLogger(__name__)

MAX_FOLDERS = 512
"""Of one user."""
_FOLDER_S = 0.1
_NODES_ROOM = 250
"""Characters for a list of nodes: the whole answer is one line."""


class Briefing:
    """All within 250 ms: a job's start waits for it."""

    def __init__(
        self,
        folders: JobFolders,
        past: Past,
        threads: Threads,
        *,
        warning: Callable[[], str] = lambda: "",
        folder_s: float = _FOLDER_S,
    ) -> None:
        """`warning`: one sentence of the head for every such job, or none."""
        self._warning = warning
        self._folders = folders
        self._past = past
        self._threads = threads
        self._folder_s = folder_s

    async def words(self, line: OptedLine) -> Mapping[str, str]:
        """Names as in the shim's protocol, the most important first; what is not known is not there."""
        files, facts = await asyncio.gather(self._files(line), self._facts(line))
        told = {"resume_count": str(line.restart)}
        if facts is not None and facts.uid == line.uid:
            told = _past_words(facts)
        told["warning"] = self._warning()
        return {name: value for name, value in (files | told).items() if value}

    async def _facts(self, line: OptedLine) -> ResumeFacts | None:
        return await self._past.of(line.job) if line.restart > 0 or line.attempt > 1 else None

    async def _files(self, line: OptedLine) -> dict[str, str]:
        try:
            await self._threads.call(partial(self._make, line), name="job folder", timeout_s=self._folder_s)
        except (PortError, OSError) as error:
            log.warning("no folder job=%d why=%r", line.job, str(error))
            return {}
        progress, stacks = self._folders.progress(line.job), self._folders.stacks(line.job)
        return {"progress_file": str(progress), "stacks_file": str(stacks)}

    def _make(self, line: OptedLine) -> None:
        """Any user may say that a job of his starts: what that takes of the node's memory is bounded, each alone."""
        there = self._folders.of_user(line.uid)
        if line.job not in there and len(there) >= MAX_FOLDERS:
            raise OSError(f"uid {line.uid} has {len(there)} already in {self._folders.root}")
        self._folders.make(line.job, line.uid)


def _past_words(facts: ResumeFacts) -> dict[str, str]:
    return {
        "resume_count": str(facts.resumes),
        "resumed": facts.resumed,
        "last_checkpoint": facts.checkpoint,
        "last_step": "" if facts.checkpoint_step is None else str(facts.checkpoint_step),
        "resume_reason": facts.reason,
        "culprits": _list(facts.culprits),
        "excluded_nodes": _list(facts.excluded),
    }


def _list(names: Iterable[str]) -> str:
    """As many as there is room for."""
    text = ""
    for name in names:
        longer = f"{text},{name}" if text else name
        if len(longer) > _NODES_ROOM:
            break
        text = longer
    return text
