"""What is in each package, as data: `deb` and `rpm` make files of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "/opt/steward"
LIB = "/usr/lib/steward"
NODE_EXTRAS = ("gpu", "ec2")
"""Optional parts that come with the packages: of every machine, ..."""
HEAD_EXTRAS = ("systemd", "mariadb")
"""... and of the head."""
NODE_NEEDS = ("botocore", "requests")
"""Of Steward's own dependencies, those that lifecycle scripts on a node need (agents need none), ..."""
CLIENT_NEEDS = ("click", "pydantic", "rich")
"""... those that the command needs beside them; all others go with the head."""
NODE_MODELS = ("s3", "sts", "sso", "sso-oidc", "signin")
"""Of botocore's models of services (28 MB), those with which a node fetches from S3, whatever its credentials, ..."""
HEAD_MODELS = ("ec2", "sagemaker")
"""... and those that the head needs beside them."""
KINDS = ("node", "client", "head")
"""The sets of Python packages; each has what those before it lack."""
_MUNGE = "munge"
_HOOKS = ("prolog", "epilog", "healthcheck")
_READER = "reader/build/steward-slurm"
"""Steward does without it where it was not built."""
_SHIM_LINK = "tools/packages/scripts/shim-link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """`scripts`: name in `scripts/` of what runs after installing, before removing, after removing and at purging.
    `has_python`: its folder of `/opt/steward` is filled by pip."""

    name: str
    summary: str
    depends: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    scripts: str = ""
    units: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    """Program in /opt/steward/bin -> module:function."""
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Place -> source, from the repository's root; programs have mode 755."""
    folders: tuple[str, ...] = ()
    python: str = ""
    """Which of `KINDS` the package has; empty for none."""


def packages(python: str, slurm: str) -> tuple[Package, ...]:
    """`python`: "3.11", that of the machine that builds; `slurm`: "22.05", whose header the shim was built with."""
    return (
        Package(
            name="steward-common",
            summary="Steward for Slurm: what its parts share",
            depends=(f"python{python}", _MUNGE),
            scripts="common",
            folders=("/etc/steward", "/etc/steward/checks.d"),
            python="node",
        ),
        Package(
            name="steward-client",
            summary="Steward for Slurm: the steward command",
            depends=("steward-common",),
            commands={"steward": "steward.cli:main"},
            links={"/usr/bin/steward": f"{PREFIX}/bin/steward"},
            python="client",
        ),
        Package(
            name="steward-head",
            summary="Steward for Slurm: stewardd, which repairs nodes and brings jobs back",
            depends=("steward-client",),
            scripts="head",
            units=("stewardd.service",),
            commands={"stewardd": "steward.head.__main__:main"},
            python="head",
        ),
        _agent(),
        _shim(slurm),
    )


def _agent() -> Package:
    return Package(
        name="steward-agent",
        summary="Steward for Slurm: the agent of a compute node",
        depends=("steward-common",),
        scripts="agent",
        units=("steward-agent.service", "run-steward-jobs.mount"),
        commands={"steward-agent": "steward.agent.__main__:main"},
        files={
            f"{LIB}/steward-verdict": "spank/build/steward-verdict",
            **{f"{LIB}/steward-{hook}": f"spank/hooks/steward-{hook}" for hook in ("prolog", "epilog", "healthcheck")},
        },
    )


def _shim(slurm: str) -> Package:
    return Package(
        name=f"steward-shim-{slurm}",
        summary=f"Steward for Slurm: --auto-resume of sbatch, srun and salloc, for Slurm {slurm}",
        provides=("steward-shim",),
        scripts="shim",
        files={
            f"{LIB}/steward.so": "spank/build/steward.so",
            **({f"{LIB}/steward-slurm": _READER} if (Path(__file__).parents[2] / _READER).is_file() else {}),
            f"{LIB}/shim-link": "tools/packages/scripts/shim-link",
        },
    )
