"""Which Slurm this is and where the versions differ. Nothing outside this folder knows a Slurm version.

Differences, each seen on real 22.05.8, 24.11.5 and 26.05.5 (recordings in tests/recordings):

- Text. squeue's long format (`-O`) has the excluded nodes from 23.02 or later on, not in 22.05; the exit code is a wait
  status in 22.05, `code:signal` later. A state is one word in all of them.
- Node lists. Before 23.11 nothing may follow a bracket but a comma (`Invalid node name specified`).
- Exclusive. `OverSubscribe` of squeue is `NO` for an exclusive job up to 25.11, and for every job that did not ask for
  the opposite from 26.05 on, where `Exclusive` shows it.
- Job state. squeue prints one word, and a flag hides the base: a job that cleans up reads `COMPLETING` whatever its
  final state. The base is then UNKNOWN until that is over. steward-slurm gives both.
- No controller. 24.11 and 26.05 print an empty queue with status 0.
- After `state=resume` 23.11 to 25.11 keep the node's old reason where there is no accounting, until the next job starts
  there; nothing else clears it (`reason=` is ignored). A node in service therefore reads as having no reason.
- Resuming a node that is in service: `Invalid node state specified`, from 26.05 `Invalid node state transition`.
"""

import re
from dataclasses import dataclass

from steward.adapters.process import show
from steward.ports import Permanent

_VERSION = re.compile(r"\b(\d{2})\.(\d{2})(?:\.(\d+))?")
OLDEST = (22, 5)
_EXCLUSIVE = (26, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRelease:
    """A version of Slurm. `text` is the full one (`24.11.5`), `release` decides about behaviour (`(24, 11)`)."""

    text: str
    release: tuple[int, int]

    @property
    def exclusive(self) -> tuple[str, str]:
        """Return squeue's field that tells whether a job shares its nodes, and its word if it does not."""
        return ("exclusive", "NODE") if self.release >= _EXCLUSIVE else ("oversubscribe", "NO")


def parse(text: str) -> SlurmRelease:
    """Return the version from `scontrol --version` (`slurm-wlm 24.11.5`). Raises Permanent for a bad or old one."""
    match = _VERSION.search(text)
    if match is None:
        raise Permanent(f"`scontrol --version` says '{show(text)}': no Slurm version in it")
    found = SlurmRelease(text=match[0], release=(int(match[1]), int(match[2])))
    if found.release < OLDEST:
        raise Permanent(f"Slurm {found.text} is too old: Steward needs 22.05 or newer")
    return found
