"""Find what the settings name and the head's machine lacks."""

import os
from collections.abc import Iterator
from typing import Any, get_type_hints

from steward.adapters.node.slurm_conf import conf_here
from steward.head.choose import trusted_uids
from steward.model.section import Section
from steward.model.setting_types import is_program
from steward.model.settings import Problem, Settings
from steward.model.settings.sections import HeadSettings


def problems_here(settings: Settings) -> list[Problem]:
    """Return the problems of the settings on the head's machine: files, folders and programs that cannot be used."""
    return [*_wrong_files(settings), *_missing_programs(settings)]


def _wrong_files(settings: Settings) -> Iterator[Problem]:
    cluster, folder = settings.cluster, settings.head.state_dir
    if not conf_here(cluster.slurm_conf):
        yield Problem.of("cluster.slurm_conf", str(cluster.slurm_conf), "the path of Slurm's own slurm.conf")
    if cluster.munge_socket is not None and not cluster.munge_socket.exists():
        yield Problem.of("cluster.munge_socket", str(cluster.munge_socket), "the socket of a munged that runs here")
    if settings.head.database or not folder.exists() or folder == HeadSettings().state_dir:
        return  # systemd gives the default folder to SlurmUser when stewardd starts
    if not folder.is_dir():
        yield Problem.of("head.state_dir", str(folder), "the path of a folder")
    elif folder.stat().st_uid not in (trusted_uids(settings) - {0} or {0}):
        yield Problem.of(
            "head.state_dir", str(folder), f"a folder of SlurmUser: `chown -R {cluster.slurm_user} {folder}`"
        )


def _missing_programs(settings: Settings) -> list[Problem]:
    """Return a problem for each program that the head would run, and that is not on this machine."""
    return [
        Problem.of(key, program, "the path of a program that is on this machine and may be executed")
        for table in ("provider", "capacity", "notify")
        for key, program in _programs(getattr(settings, table), table)
        if not os.access(program, os.X_OK) or not os.path.isfile(program)
    ]


def _programs(table: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield each key of a table, or of the tables in it, that has an argv, with its program."""
    if isinstance(table, tuple):
        for number, each in enumerate(table):
            yield from _programs(each, f"{key}[{number}]")
    if not isinstance(table, Section):
        return
    for name, hint in get_type_hints(type(table), include_extras=True).items():
        if name not in type(table).model_fields:
            continue
        value = getattr(table, name)
        if is_program(hint):
            yield from [(f"{key}.{name}", value[0])] if value else []
        else:
            yield from _programs(value, f"{key}.{name}")
