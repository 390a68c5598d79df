"""Reads what an installation needs to know of the Slurm cluster of this machine."""

import pwd
from collections.abc import Iterable
from pathlib import Path

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import SlurmConfig
from steward.model.slurm_site import SlurmSite


def survey(conf: Path, timeout_s: float, logins: Iterable[str] = ()) -> SlurmSite:
    """Asks slurmctld. Raises Retryable where it does not answer, Permanent where this Slurm is too old."""
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
    return SlurmSite(
        config=site.config,
        nodes=site.nodes,
        partitions=site.partitions,
        plugstack=site.plugstack,
        logins=frozenset(filter(_exists, names)),
    )


def _exists(login: str) -> bool:
    try:
        pwd.getpwnam(login)
    except (KeyError, ValueError):
        return False
    return True
