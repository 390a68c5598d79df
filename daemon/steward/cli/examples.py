"""Examples that `--help` shows for each command and group. A test parses all of them."""

from collections.abc import Mapping
from types import MappingProxyType

import click

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "status": ("steward status",),
        "assess": ("steward assess --since 90d --per-node-hour 25", "steward assess --html report.html"),
        "approve": ("steward approve c17", "steward approve n[2-4]"),
        "breaker list": ("steward breaker list",),
        "breaker reset": ("steward breaker reset group:workers", "steward breaker reset check:gpu.xid --json"),
        "cases": ("steward cases", "steward cases --all"),
        "check list": ("steward check list",),
        "check arm": ("steward check arm site.scratch",),
        "check deep": ("steward check deep n[1-8]", "steward check deep n3 --kind InstanceStress --wait"),
        "check disarm": ("steward check disarm site.scratch",),
        "check show": ("steward check show d4",),
        "check trials": ("steward check trials",),
        "checks": ("steward checks --failing", "steward checks n17"),
        "cluster apply": ("steward cluster apply cluster.json --dry-run", "steward cluster apply cluster.json -y"),
        "cluster delete": ("steward cluster delete",),
        "config check": ("steward config check", "steward config check --config new.toml --offline"),
        "config doc": ("steward config doc",),
        "config show": ("steward config show",),
        "doctor": ("steward doctor", "steward doctor --json"),
        "elastic list": ("steward elastic list",),
        "elastic pause": ("steward elastic pause 4711", "steward elastic pause 4711 --off"),
        "elastic resize": ("steward elastic resize 4711 4",),
        "elastic show": ("steward elastic show 4711",),
        "events": ("steward events -n 20", "steward events -f --level warning", "steward events --job 4711"),
        "explain": (
            "steward explain n17",
            "steward explain c5",
            "steward explain 4711",
            "steward explain 4711_3",
            "steward explain group gpu",
        ),
        "group list": ("steward group list",),
        "group delete": ("steward group delete workers",),
        "group scale": ("steward group scale workers 16 --min 8",),
        "head handover": ("steward head handover",),
        "head move-state": ("steward head move-state",),
        "init": ("steward init --print", "steward init --act --login-hosts"),
        "install": ("steward install --hosts n[1-40] --packages packages",),
        "jobs": ("steward jobs", "steward jobs history 4711"),
        "jobs history": ("steward jobs history 4711",),
        "lemons": ("steward lemons", "steward lemons --all"),
        "node list": ("steward node list",),
        "node delete": ("steward node delete n[3-4]",),
        "node reboot": ("steward node reboot n3",),
        "node replace": ("steward node replace n3 -y",),
        "nodes": ("steward nodes --wrong",),
        "notify list": ("steward notify list",),
        "notify test": ("steward notify test ops",),
        "pause": ('steward pause "switch maintenance until 14:00"',),
        "plan": ("steward plan --dry-run",),
        "quota list": ("steward quota list",),
        "quota apply": ("steward quota apply quotas.toml --dry-run", "steward quota apply quotas.toml"),
        "quota delete": ("steward quota delete vision",),
        "quota doctor": ("steward quota doctor",),
        "quota explain": ("steward quota explain 4711",),
        "quota setup": ("steward quota setup vision speech", "steward quota setup vision --apply"),
        "quota show": ("steward quota show vision",),
        "rehearse": ("steward rehearse train.sh", "steward rehearse --minutes 20 -N2 -p gpu train.sh --lr 3e-4"),
        "report": ("steward report --since 7d", "steward report 4711", "steward report --month 2026-11 --json"),
        "resume-actions": ("steward resume-actions",),
        "simulate": (
            "steward simulate --llama3 --runs 1",
            "steward simulate --rate 4 --jobs 4x64 --spares 4 --site new.toml --set repair.concurrent_percent=10",
            "steward simulate --rsc1 --sweep spares=0..32 interval=5m..60m --json",
        ),
        "top": ("steward top", "steward top --once"),
        "uninstall": ("steward uninstall --hosts n[1-40] --here",),
    }
)


def add_examples(command: click.Command, path: str, examples: Mapping[str, tuple[str, ...]] = EXAMPLES) -> None:
    """Append the examples of a command, and of the commands below it, to their help.

    A group without examples of its own shows the first one of `examples` that is of a command below it.
    """
    below = (lines[:1] for name, lines in examples.items() if f"{name} ".startswith(f"{path} ".lstrip()))
    if lines := examples.get(path) or next(below, ()):
        text = "\n".join(("\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)))
        others = (command.epilog or "").removesuffix(text).rstrip()
        command.epilog = "\n\n".join(filter(None, (others, text)))
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        add_examples(inner, f"{path} {name}".lstrip(), examples)
