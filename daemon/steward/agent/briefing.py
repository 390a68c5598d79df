"""The briefing of a starting script or step of an opted-in job: the paths of its files, and the job's past."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from steward.adapters.offload import PerUser, Threads
from steward.adapters.wire.job_messages import facts_wanted_frame
from steward.adapters.wire.shimline import OptedLine
from steward.agent.job_folder import JobFolders
from steward.agent.link import HeadConnection
from steward.model.ids import JobId
from steward.model.job_report import ResumeFacts
from steward.model.text import cause_and_file
from steward.ports import PortError

# A resumed job's past, asked of the head when a script or step of the job starts here.
#
# The head sends the facts unasked with the answer that lets a step run again: then no request is needed.

PATIENCE_S = 1.5
"""The time to wait for the head's facts.

The head may first have to ask Slurm where the job runs, which takes longer while the head or Slurm is busy.
"""
AWAY_S = 0.25
"""The time to wait for the facts while the head is away."""
TOLD_S = 5.0
"""How long facts that the head sent unasked are used."""
MAX_TOLD = 256

_ON_PATH = Path(__file__).resolve().parent.parent / "job" / "on_path"
"""The folder in which the user's Python finds `import steward_job`."""


class ResumeFactsCache:
    """The facts about resumed jobs, as the head sent them."""

    def __init__(self, head: HeadConnection, patience_s: float = PATIENCE_S) -> None:
        self._head, self._patience_s = head, patience_s
        self._wanted: dict[JobId, asyncio.Future[ResumeFacts | None]] = {}
        self._told: dict[JobId, tuple[ResumeFacts, float]] = {}

    async def of(self, job: JobId) -> ResumeFacts | None:
        """Return the job's past; callers share one request.

        None: the head does not know the job, or did not answer in time.
        """
        if (told := self._told.get(job)) is not None and _now() < told[1] + TOLD_S:
            return told[0]
        wanted = self._wanted.get(job)
        if wanted is None:
            wanted = self._wanted[job] = asyncio.get_running_loop().create_future()
            self._head.post(facts_wanted_frame(job))
        await asyncio.wait((wanted,), timeout=self._patience_s if self._head.away_since is None else AWAY_S)
        if self._wanted.get(job) is wanted:
            del self._wanted[job]
        return wanted.result() if wanted.done() else None

    def hear(self, job: JobId, facts: ResumeFacts | None) -> None:
        """Take the head's facts: answer the waiting request, else keep them for `TOLD_S` seconds."""
        wanted = self._wanted.get(job)
        if wanted is not None and not wanted.done():
            wanted.set_result(facts)
        elif facts is not None:
            self._told = {id: told for id, told in self._told.items() if id != job and _now() < told[1] + TOLD_S}
            if len(self._told) < MAX_TOLD:
                self._told[job] = facts, _now()


def _now() -> float:
    return asyncio.get_running_loop().time()


log = logging.getLogger(__name__)

MAX_FOLDERS = 512
"""The most job folders of one user."""
_FOLDER_S = 0.1
_LEFT_S = 1.0
_LEFT_THREADS = 4
"""Threads for each user."""
LeftBehind = Callable[[JobId, int, int], tuple[str, ...]]
"""Return the processes that an earlier run or attempt of a job (uid, current restart count) left on this node."""
_NODES_ROOM = 250
"""The most characters of a list of nodes: the whole answer is one line."""


class Briefing:
    """The variables for a starting script or step.

    The start waits for them: a first run at most 100 ms (for its folder), a later run as long as for the job's past.
    """

    def __init__(
        self,
        folders: JobFolders,
        past: ResumeFactsCache,
        threads: Threads,
        *,
        warning: Callable[[], str] = lambda: "",
        left_behind: LeftBehind = lambda job, uid, restart: (),
        folder_s: float = _FOLDER_S,
    ) -> None:
        """Take `warning`, which returns the head's one-sentence warning for opted-in jobs; empty for none."""
        self._warning, self._left_behind = warning, left_behind
        self._folders = folders
        self._past = past
        self._threads, self._users_memory = threads, PerUser(lambda: Threads(_LEFT_THREADS))
        self._folder_s = folder_s

    async def words(self, line: OptedLine) -> Mapping[str, str]:
        """Return the variables by their names in the shim's protocol, most important first, without unknown ones."""
        files, facts, left = await asyncio.gather(self._file_variables(line), self._facts(line), self._leftovers(line))
        told = {"resume_count": str(line.restart)}
        if facts is not None and facts.uid == line.uid:
            told = _past_variables(facts)
        told |= {"left_behind": left, "warning": self._warning(), "python": str(_ON_PATH)}
        return {name: value for name, value in (files | told).items() if value}

    async def _facts(self, line: OptedLine) -> ResumeFacts | None:
        return await self._past.of(line.job) if line.has_past else None

    async def _leftovers(self, line: OptedLine) -> str:
        """Return the processes of an earlier run or attempt that still run here, as one text; empty if not known."""
        if not line.has_past:
            return ""
        look = partial(self._left_behind, line.job, line.uid, line.restart)
        try:
            # reading the memory of a user's process may hang
            found = await self._users_memory.of(line.uid).call(look, name="left behind", timeout_s=_LEFT_S)
        except (PortError, OSError) as error:
            log.warning("not known what is left job=%d why=%r", line.job, cause_and_file(error))
            return ""
        if found:
            log.warning("left behind job=%d processes=%r", line.job, _joined(found))
        return _joined(found).replace(",", ", ")

    async def _file_variables(self, line: OptedLine) -> dict[str, str]:
        try:
            await self._threads.call(partial(self._make_folder, line), name="job folder", timeout_s=self._folder_s)
        except (PortError, OSError) as error:
            log.warning("no folder job=%d why=%r", line.job, cause_and_file(error))
            return {}
        progress = self._folders.progress(line.job, line.uid)
        stacks = self._folders.stacks(line.job, line.uid)
        return {"progress_file": str(progress), "stacks_file": str(stacks)}

    def _make_folder(self, line: OptedLine) -> None:
        # any user may claim that a job of theirs starts: the number of folders is limited for each user
        there = self._folders.of_user(line.uid)
        if line.job not in there and len(there) >= MAX_FOLDERS:
            raise OSError(f"uid {line.uid} has {len(there)} folders already in {self._folders.root}")
        self._folders.make(line.job, line.uid)


def _past_variables(facts: ResumeFacts) -> dict[str, str]:
    return {
        "resume_count": str(facts.resumes),
        "resumed": facts.resumed,
        "last_checkpoint": facts.checkpoint,
        "last_step": "" if facts.checkpoint_step is None else str(facts.checkpoint_step),
        "resume_reason": facts.reason,
        "culprits": _joined(facts.culprits),
        "excluded_nodes": _joined(facts.excluded),
    }


def _joined(names: Iterable[str]) -> str:
    """Return as many names as fit into `_NODES_ROOM` characters, joined by commas."""
    text = ""
    for name in names:
        longer = f"{text},{name}" if text else name
        if len(longer) > _NODES_ROOM:
            break
        text = longer
    return text
