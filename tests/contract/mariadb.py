"""A MariaDB server of our own, on a socket only, with its data in a folder that goes with it."""

import getpass
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine, create_engine

from tests.fakes.dialled import is_listened_at
from tests.fakes.until import FACT_S, until

_SERVER, _INSTALL = "mariadbd", "mariadb-install-db"
_NEEDED = (_SERVER, _INSTALL, "my_print_defaults")
_USER = "steward"


def missing() -> list[str]:
    places = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
    return [name for name in _NEEDED if shutil.which(name, path=places) is None]


@dataclass
class MariaDb:
    """`admin` may do all."""

    socket: Path
    admin: Engine
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self) -> str:
        """The URL of a new, empty database, for a user who may do all in it and nothing beyond."""
        name = f"steward{next(self._numbers)}"
        self.order(f"CREATE DATABASE {name} CHARACTER SET utf8mb4", f"GRANT ALL ON {name}.* TO {_USER}@localhost")
        return _url(_USER, name, self.socket)

    def order(self, *statements: str) -> None:
        with self.admin.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)


@contextmanager
def a_mariadb() -> Iterator[MariaDb]:
    with tempfile.TemporaryDirectory(prefix="steward-mariadb-") as name:
        folder = Path(name)
        # two servers that make a temporary table at the same time give it the same name: in /tmp one of them ends
        options = ["--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}", f"--user={getpass.getuser()}"]
        install = [_INSTALL, *options, "--auth-root-authentication-method=normal", "--skip-test-db"]
        made = subprocess.run(install, check=False, capture_output=True, text=True, timeout=FACT_S)
        assert made.returncode == 0, made.stdout + made.stderr
        socket = folder / "sock"
        server = [_SERVER, *options, f"--socket={socket}", "--skip-networking", f"--pid-file={folder / 'pid'}"]
        with (folder / "log").open("wb") as log:
            mariadbd = subprocess.Popen(["/usr/bin/env", "PATH=/usr/sbin:/usr/bin", *server], stdout=log, stderr=log)
        try:
            until("MariaDB answers", lambda: is_listened_at(socket))
            found = MariaDb(socket, create_engine(_url("root", "mysql", socket), isolation_level="AUTOCOMMIT"))
            found.order(f"CREATE USER {_USER}@localhost")
            yield found
            found.admin.dispose()
        finally:
            mariadbd.terminate()
            mariadbd.wait(FACT_S)


def _url(user: str, database: str, socket: Path) -> str:
    return f"mysql+pymysql://{user}@localhost/{database}?unix_socket={socket}&charset=utf8mb4"
