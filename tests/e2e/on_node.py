"""Hands on a node's machine, whatever the bed is made of: a container of its own, or this very machine."""

from collections.abc import Mapping
from pathlib import Path

from steward.adapters.proc import ProcessKey
from steward.adapters.process import run
from steward.model.ids import NodeName
from steward_bed.bed import Backend, Bed
from steward_bed.docker import load_plan
from steward_bed.docker_faults import machines
from steward_bed.layout import DockerLayout, Layout
from steward_bed.providers.local import LocalProvider

_TIMEOUT_S = 30.0


def has_own_machines(bed: Bed) -> bool:
    """False: all nodes share this machine's memory, disks, clock and munged."""
    return bed.spec.backend is Backend.DOCKER


def on_node(bed: Bed, node: str, *argv: str, env: Mapping[str, str] | None = None) -> str:
    """What a command says as root on the node's machine. Raises Failed when it fails.

    By the `docker` command: its Python library loses what comes together with the HTTP answer's head.
    """
    if not has_own_machines(bed):
        return run(argv, timeout_s=_TIMEOUT_S, env=env or {}).text
    container = machines(load_plan(DockerLayout(root=bed.spec.dir)).cluster)[NodeName(node)]
    variables = [f"--env={name}={value}" for name, value in (env or {}).items()]
    return run(["docker", "exec", *variables, str(container.id), *argv], timeout_s=_TIMEOUT_S).text


def agent_of(bed: Bed, node: str) -> ProcessKey:
    """Its process, where all nodes are this machine."""
    machine = LocalProvider(bed.spec.dir).machine(NodeName(node))
    agent = None if machine is None else machine.program("agent")
    assert agent is not None, f"no agent on {node}"
    return agent


def site_checks(bed: Bed, node: str) -> Path:
    """Here: the node's directory of site checks."""
    root, name = bed.spec.dir, NodeName(node)
    return DockerLayout(root=root).checks(name) if has_own_machines(bed) else Layout(root=root).node(name) / "checks.d"


def put_site_check(bed: Bed, node: str, name: str, text: str) -> None:
    """Written beside, then renamed: the agent never runs half of it."""
    folder = site_checks(bed, node)
    new = folder.parent / f"{name}.new"
    new.write_text(text)
    new.chmod(0o755)
    new.replace(folder / name)
