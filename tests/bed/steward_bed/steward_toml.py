"""The steward.toml of a bed: short times, so that a test does not wait for what production should."""

import getpass
import json
from collections.abc import Mapping
from typing import TypeGuard

from steward_bed import fake_gpus
from steward_bed.bed import BedSpec, Overrides
from steward_bed.layout import Layout
from steward_bed.providers.local import RUN

Table = Mapping[str, object]

CHECK_INTERVAL_S = 6.0
"""Often enough where a check is to find something, and seldom enough for many idle nodes on one machine."""

FOR_TESTS: Mapping[str, Table] = {
    "repair": {
        "mode": "act",
        "agents_grace_s": 3.0,
        "settle_degraded_s": 0.5,
        "concurrent_min": 2,
        "check_breaker_min": 1000,
        "release_deadline_h": 0.05,
        "launch_timeout_s": 180.0,
        "provision_timeout_s": 60.0,
        "verify_timeout_s": 60.0,
        "retry_s": 1.0,
        "replacements_per_hour": 1000,
        "node_repairs": 100,
        "capacity_backoff_s": [1.0, 2.0],
    },
    "repair.budgets": {
        "hardware_repairs": 100,
        "replacements_per_day": 1000,
        "reboots_per_day": 1000,
        "probation_h": 0,
        "cooldown_s": 0,
    },
    "health": {"canary_node_count": 0},
    "deep": {"budget_s": 40.0, "start_timeout_s": 30.0, "busy_wait_s": 60.0, "gather_s": 1.0},
    "checks.site": {"mode": "drain"},
    "checks.disk": {"mode": "report"},
    "checks.os.load": {"mode": "off"},
    "checks.mem.frag": {"mode": "off"},
}
"""The settings in every backend's file: short times, and a site check that counts, for the fault `fail-check`. That the
disk of the machine under the bed is full, its load and its memory are no faults of its nodes."""


OF_THE_HOST: Mapping[str, Table] = {"checks.proc.rogue": {"mode": "off"}, "checks.os.dstate": {"mode": "report"}}
"""Nodes of a local bed see every process of the machine under it; those of the docker bed only their own."""

PRETENDED: Mapping[str, Table] = {"checks.memory": {"mode": "off"}}
"""Nodes that Slurm was told more of than the machine under the bed has (`BedSpec.hardware`)."""

FOR_GROUPS: Mapping[str, object] = {
    "minimum_timeout_h": 0.05,
    "update_drain_deadline_s": 60.0,
    "checkpoint_grace_s": 1.0,
    "capacity_backoff_s": [1.0, 2.0],
    "quota_backoff_s": [1.0, 2.0],
    "script_backoff_s": [1.0, 2.0],
    "bootstrap_backoff_s": [1.0, 2.0],
    "other_backoff_s": [1.0, 2.0],
    "setup_timeout_s": 60.0,
}
"""The same for groups made through the API."""


def local_toml(layout: Layout, spec: BedSpec, *, listen: int, http: int, users: int) -> str:
    """The one file that stewardd and every agent of a local bed read."""
    tables: dict[str, Table] = {
        "cluster": {
            "name": layout.root.name,
            "slurm_conf": str(layout.slurm_conf),
            "slurm_user": getpass.getuser(),
            "munge_socket": str(layout.munge_socket),
        },
        "head": {
            "listen": f"127.0.0.1:{listen}",
            "http": f"127.0.0.1:{http}",
            "users_http": f"127.0.0.1:{users}",
            "state_dir": str(layout.controller / "stewardd"),
        },
        "agent": _agent(layout, listen),
        **FOR_TESTS,
        "deep": {**FOR_TESTS["deep"], "output": str(layout.log("deep-%j"))},
        **OF_THE_HOST,
        **(PRETENDED if spec.hardware else {}),
    }
    if spec.groups:
        tables["capacity"] = {"provider": "local", "slurm_include": str(layout.partitions), **FOR_GROUPS}
    if spec.fixed:
        tables["provider.static"] = {
            "spares": ",".join(spec.spare_names),
            "reboot": [str(layout.node_power), "cycle", "%n"],
        }
    else:
        tables["provider.local"] = {"dir": str(layout.root)}
    if spec.gpus:
        tables = merge(tables, fake_gpus.settings(layout.gpus))
    return render(merge(tables, spec.settings), groups(spec, "static" if spec.fixed else "local"))


def _agent(layout: Layout, head_port: int) -> Table:
    node = layout.node()
    return {
        "head": f"127.0.0.1:{head_port}",
        "socket": str(layout.agent_socket),
        "state_dir": str(node / RUN),
        "instance_id_file": str(node / "instance_id"),
        "boot_id_file": str(node / "boot_id"),
        "board_serial_file": str(node / "board_serial"),
        "site_checks_dir": str(node / "checks.d"),
        "kernel_log": str(node / "kernel.log"),
        "job_dir": str(node / RUN / "jobs"),
        "setup_dir": str(node / "setup"),
        "setup_log": str(node / "provisioning.log"),
        "config_dir": str(node / "config"),
        "check_interval_s": CHECK_INTERVAL_S,
    }


def groups(spec: BedSpec, provider: str) -> list[Table]:
    """One group of the nodes, and one of the spares if there are any; spares of fixed machines are in no group."""
    name = "workers" if spec.groups else "main"
    found: list[Table] = [{"name": name, "nodes": ",".join(spec.node_names), "provider": provider}]
    if spec.spare_names and not spec.fixed:
        found.append({"name": "spare", "nodes": ",".join(spec.spare_names), "provider": provider})
    return found


def merge(tables: Mapping[str, Table], over: Overrides) -> dict[str, Table]:
    """`over` wins key by key."""
    return {name: {**tables.get(name, {}), **over.get(name, {})} for name in {**tables, **over}}


def render(tables: Mapping[str, Table], groups: list[Table]) -> str:
    """TOML. Strings, numbers, booleans and lists of them are written the same in JSON."""
    many = {"groups": groups}
    parts = []
    for name, table in tables.items():
        many |= {f"{name}.{key}": value for key, value in table.items() if _are_tables(value)}
        parts.append(_table(f"[{name}]", {key: value for key, value in table.items() if not _are_tables(value)}))
    return "\n".join([*parts, *(_table(f"[[{name}]]", one) for name, found in many.items() for one in found)])


def _are_tables(value: object) -> TypeGuard[list[Table]]:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _table(head: str, table: Table) -> str:
    return "\n".join([head, *(f"{_key(key)} = {json.dumps(value)}" for key, value in table.items()), ""])


def _key(name: str) -> str:
    """A dotted name in quotes: without them it would be a table within the table."""
    return json.dumps(name) if "." in name else name
