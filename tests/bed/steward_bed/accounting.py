"""A bed with accounting: slurmdbd and its database, limits and QOS in force, teams may be given their shares.

The database is MariaDB on a unix socket in a folder that nobody else can enter, so that it needs no passwords; it keeps
nothing that matters longer than its bed. On the docker bed both are service units of the image.
"""

import getpass
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from steward.adapters.process import Failed, run
from steward_bed.bed import Bed, BedError, BedSpec
from steward_bed.layout import Layout
from steward_bed.slurm_versions import SlurmVersion
from steward_bed.wait import wait_until

ACCOUNT = "everybody"
"""Whose members may submit from the start: without an association Slurm refuses every job."""
DATABASE, SLURMDBD = "mariadbd", "slurmdbd"
_TYPED_GPU = re.compile(r"\bgpu:([A-Za-z0-9_.-]+):\d+")
_THERE = re.compile(r"Nothing (new )?added|[Aa]lready exist")
"""sacctmgr's words for an account or a user that is there already: those of 22.05, and those of 24.11 and 26.05."""
_TABLES = ("mariadb_system_tables.sql", "mysql_system_tables.sql")
_SCRIPTS = (Path("/usr/share/mariadb"), Path("/usr/share/mysql"))
_MARKS = (23, 2)
_INSTALL_S = 60.0
_MEMBERS_S = 30.0


def slurm_conf(
    spec: BedSpec, version: SlurmVersion, *, host: str, port: int = 6819, munge_socket: Path | None = None
) -> list[str]:
    """Lines of slurm.conf; none for a bed without accounting. `munge_socket` where it is not MUNGE's own place."""
    if not spec.accounting:
        return []
    kinds = sorted(set(_TYPED_GPU.findall(f"{spec.hardware}\n{spec.slurm_conf}")))  # of machines that are planned, too
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={host}",
        f"AccountingStoragePort={port}",
        *([f"AccountingStoragePass={munge_socket}"] if munge_socket else []),
        "AccountingStorageEnforce=associations,limits,qos",
        f"AccountingStorageTRES={','.join(['gres/gpu', *(f'gres/gpu:{kind}' for kind in kinds)])}",
        "PriorityType=priority/multifactor",
        "PriorityWeightQOS=1000000",
        "PreemptType=preempt/qos",
        "PreemptMode=REQUEUE",
        # 22.05 does not start with a word that it does not know.
        *(["PreemptParameters=min_exempt_priority=4000000000"] if version.release >= _MARKS else []),
    ]


def write_slurmdbd_conf(layout: Layout, port: int) -> None:
    """Slurm finds it beside slurm.conf, and wants nobody else to read it."""
    path = layout.slurm_conf.parent / "slurmdbd.conf"
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        "DbdHost=localhost",
        "DbdAddr=127.0.0.1",
        f"DbdPort={port}",
        f"SlurmUser={getpass.getuser()}",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        "StorageLoc=slurm_acct_db",
        f"LogFile={layout.log(SLURMDBD)}",
        f"PidFile={layout.root}/run/slurmdbd.pid",
    ]
    path.write_text("\n".join([*lines, ""]))
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def database_argv(mariadbd: str, layout: Layout) -> list[str]:
    """Small, and in no hurry to write to the disk: a power cut may take its last second."""
    return [
        mariadbd,
        "--no-defaults",
        f"--datadir={layout.database}",
        f"--tmpdir={layout.database}",  # two servers may give a temporary table the same name: in /tmp one of them ends
        f"--user={getpass.getuser()}",
        f"--socket={layout.database_socket}",
        f"--pid-file={layout.database / 'mariadbd.pid'}",
        "--skip-networking",
        "--skip-grant-tables",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=32M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
    ]


def install_database(mariadbd: str, layout: Layout) -> None:
    """The server's own tables and nothing else. `mariadb-install-db` takes three times as long: time zones, help."""
    layout.database.mkdir(mode=0o700)
    found = [place / name for place in _SCRIPTS for name in _TABLES if (place / name).is_file()]
    if not found:
        places = ", ".join(map(str, _SCRIPTS))
        raise BedError(f"no {_TABLES[0]} in {places}; on Debian: apt-get install mariadb-server-core")
    orders = b"create database mysql;\nuse mysql;\n" + found[0].read_bytes()
    try:
        run([*database_argv(mariadbd, layout), "--bootstrap"], timeout_s=_INSTALL_S, input=orders)
    except Failed as error:
        said = error.completed.error_text.splitlines() if error.completed else []
        why = next((line for line in reversed(said) if "ERROR" in line), str(error))  # the cause stands at the end
        raise BedError(f"the database cannot be made: {why}") from error


def let_in(bed: Bed, users: Iterable[str]) -> None:
    """Make them members of `ACCOUNT`, so that they may submit; returns when Slurm's controller knows of it."""
    wanted = sorted(set(users))
    wait_until("slurmdbd has the cluster's record", lambda: _is_recorded(bed), _MEMBERS_S)

    def let_all_in() -> bool:
        sacctmgr(bed, "add", "account", ACCOUNT, "Description=all users of the test bed", "Organization=testbed")
        sacctmgr(bed, "add", "user", ",".join(wanted), f"Account={ACCOUNT}")
        return True

    wait_until("slurmdbd takes accounts and users", let_all_in, _MEMBERS_S)
    shown = ["scontrol", "show", "assoc_mgr", "flags=assoc", f"account={ACCOUNT}"]
    wait_until(
        f"slurmctld lets {', '.join(wanted)} submit",
        lambda: all(f"UserName={user}(" in bed.run(shown).text for user in wanted),
        _MEMBERS_S,
    )


def _is_recorded(bed: Bed) -> bool:
    """Whether slurmctld has told slurmdbd where it listens: until then changes of limits do not reach it."""
    shown = bed.run(["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster,ControlPort"]).text
    return any(line.partition("|")[2] not in ("", "0") for line in shown.splitlines())


def sacctmgr(bed: Bed, *words: str) -> None:
    """One edit. What is so already is success."""
    argv: Sequence[str] = ["sacctmgr", "--immediate", "--quiet", *words]
    done = bed.run(argv, check=False)
    if done.returncode != 0 and not _THERE.search(done.text + done.error_text):
        raise BedError(f"accounting: {done.line()}")
