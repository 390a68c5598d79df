"""Slurm's commands and `steward` for a shell on the host: each runs in the controller's container."""

from steward.testbed.docker_layout import DockerLayout

_NAMES = ["sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo"]
_NAMES += ["sprio", "squeue", "sreport", "srun", "sshare", "sstat", "steward", "strigger"]
_SCRIPT = """#!/bin/sh
# Made by `steward testbed up`.
case $PWD/ in
    {shared}/*) where=$PWD ;;
    *) where={shared} ;;
esac
tty=
if [ -t 0 ] && [ -t 1 ]; then tty=-t; fi
exec docker exec -i $tty -w "$where" {head} {name} "$@"
"""


def write_commands(layout: DockerLayout) -> None:
    layout.commands.mkdir()
    for name in _NAMES:
        script = layout.commands / name
        script.write_text(_SCRIPT.format(shared=layout.shared, head=layout.head, name=name))
        script.chmod(0o755)
