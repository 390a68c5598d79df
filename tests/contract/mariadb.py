"""A MariaDB server of our own, on a socket only, with its data in a folder that goes with it."""

import getpass
import itertools
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
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
    """`admin` may do all; `argv` starts the server."""

    socket: Path
    admin: Engine
    argv: Sequence[str]
    _server: "subprocess.Popen[bytes] | None" = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> None:
        """Return when it answers."""
        with (self.socket.parent / "log").open("ab") as log:
            self._server = subprocess.Popen(self.argv, stdout=log, stderr=log)
        until("MariaDB answers", lambda: is_listened_at(self.socket))

    def send(self, number: signal.Signals) -> None:
        """Send its process a signal; SIGKILL and SIGTERM return when it has ended."""
        assert self._server is not None
        self._server.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._server.wait(FACT_S)

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
        server = [_SERVER, *options, f"--socket={socket}", "--skip-networking"]
        admin = create_engine(_url("root", "mysql", socket), isolation_level="AUTOCOMMIT")
        found = MariaDb(socket, admin, ["/usr/bin/env", "PATH=/usr/sbin:/usr/bin", *server])
        found.start()
        try:
            found.order(f"CREATE USER {_USER}@localhost")
            yield found
            found.admin.dispose()
        finally:
            found.send(signal.SIGTERM)


def _url(user: str, database: str, socket: Path) -> str:
    return f"mysql+pymysql://{user}@localhost/{database}?unix_socket={socket}&charset=utf8mb4"
