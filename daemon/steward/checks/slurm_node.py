"""What Slurm was told of this node. Several checks ask it, in the same words, so that one look serves them all."""

import re

from steward.checks.check import Facts
from steward.model.probe import Raw, RunProgram

_OVERRIDES = re.compile(r"^\s*SlurmdParameters\s*=\s*\S*config_overrides", re.IGNORECASE | re.MULTILINE)
EVERY_S = 3600.0
"""It asks slurmctld, and what it is compared with does not come and go."""


def show_node(facts: Facts) -> RunProgram:
    env = (("SLURM_CONF", facts.slurm_conf),) if facts.slurm_conf else ()
    return RunProgram(argv=("scontrol", "--oneliner", "show", "node", facts.node), env=env, timeout_s=8.0)


def is_pretended(slurm_conf: str | None) -> bool:
    """Whether the site says in this slurm.conf that its words count and not the machine."""
    return _OVERRIDES.search(slurm_conf or "") is not None


def number(shown: Raw, name: str) -> int | None:
    """The value of one of its numbers; None where Slurm did not answer or does not say."""
    found = re.search(rf"(?:^|\s){name}=([0-9]{{1,12}})(?:\s|$)", shown.output) if shown.returncode == 0 else None
    return int(found[1]) if found else None


def no_answer(shown: Raw, facts: Facts) -> str:
    """Why nothing can be compared."""
    return f"scontrol show node {facts.node}: rc={shown.returncode} {shown.output[:200]}"
