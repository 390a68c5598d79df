"""The facts about a Slurm that its first settings file needs."""

import pwd
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import SlurmConfig
from steward.model.slurm_site import SlurmSite


def survey(conf: Path, timeout_s: float, logins: Iterable[str] = ()) -> SlurmSite:
    """Return the facts about the cluster. Raises Retryable without an answer, Permanent for a Slurm that is too old."""
    slurm = CommandLineSlurm(conf=str(conf), timeout_s=timeout_s)
    asked = SlurmConfig(conf=conf, timeout_s=timeout_s)
    config = asked.config()
    site = SlurmSite(
        config=config,
        nodes=slurm.nodes(),
        partitions={name: each.nodes for name, each in slurm.partitions().items()},
        plugstack=asked.plugstack(config)[1] or "",
    )
    names = {site.slurm_user, *logins}
    return replace(site, logins=frozenset(filter(_exists, names)))


def _exists(login: str) -> bool:
    """Return whether this machine knows the login name."""
    try:
        pwd.getpwnam(login)
    except (KeyError, ValueError):
        return False
    return True
