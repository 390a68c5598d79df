"""MariaDB and MySQL: bodies of more than 65,535 bytes, which their TEXT has not room for."""

from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BODIES = (
    ("memory", "body"),
    ("journal", "body"),
    ("journal", "why"),
    ("journal", "error"),
    ("events", "body"),
    ("ledger", "body"),
)


def upgrade() -> None:
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        for table, column in _BODIES:
            op.alter_column(table, column, type_=MEDIUMTEXT(), existing_nullable=False)
