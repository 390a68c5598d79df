"""The ledger: runs of jobs and repairs of nodes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import VARCHAR

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.String(255).with_variant(VARCHAR(255, collation="utf8mb4_bin"), "mysql", "mariadb")
    op.create_table(
        "ledger",
        sa.Column("key", key, primary_key=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("begun", sa.Float(53), nullable=False),
        sa.Column("ended", sa.Float(53)),
        sa.Column("job", sa.BigInteger),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("ledger_begun", "ledger", ["begun"])
    op.create_index("ledger_job", "ledger", ["job"])
