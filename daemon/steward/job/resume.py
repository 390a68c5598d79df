"""A job's past, as Steward tells it in the job's environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ResumeInfo:
    """The past of this run of the job. Outside Steward, and in a first run, all of it is empty."""

    resumes: int = 0
    """How often the job was resumed before this run."""
    reason: str = ""
    """Why it was resumed last, in words."""
    culprits: tuple[str, ...] = ()
    """The nodes that were blamed for it."""
    excluded: tuple[str, ...] = ()
    """Nodes that the job is kept away from."""
    checkpoint: Path | None = None
    """The last checkpoint that the job told of."""
    step: int | None = None
    """The step that this checkpoint holds, as the job told it."""

    @property
    def is_resumed(self) -> bool:
        return self.resumes > 0


def resume_info(env: Mapping[str, str] | None = None) -> ResumeInfo:
    """From the STEWARD_* variables; what makes no sense is left out."""
    env = os.environ if env is None else env
    checkpoint = env.get("STEWARD_LAST_CHECKPOINT", "")
    return ResumeInfo(
        resumes=_whole(env.get("STEWARD_RESUME_COUNT")) or 0,
        reason=env.get("STEWARD_RESUME_REASON", ""),
        culprits=_nodes(env.get("STEWARD_CULPRITS", "")),
        excluded=_nodes(env.get("STEWARD_EXCLUDED_NODES", "")),
        checkpoint=Path(checkpoint) if checkpoint else None,
        step=_whole(env.get("STEWARD_LAST_STEP")),
    )


def _whole(word: str | None) -> int | None:
    return int(word) if word and re.fullmatch(r"[0-9]{1,18}", word) else None


def _nodes(words: str) -> tuple[str, ...]:
    """Split at commas, those in brackets (`n[1,3]`) left alone."""
    return tuple(re.findall(r"(?:[^,\[]|\[[^\]]*\])+", words))
