"""Alembic, apart: most starts find today's tables and need none of it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection

__all__ = ["CommandError", "upgrade"]

_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, revision: str) -> None:
    """Bring the tables to `revision` within the connection's transaction. Raises CommandError for an unknown one."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
