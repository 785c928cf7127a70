"""The tables of jobs and of their days."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_NAMES = ("cluster", "namespace", "kind", "api_version", "name", "user_name", "queue")
_AMOUNTS = ("gpu_seconds", "cpu_core_seconds", "memory_gib_seconds")
_PHASES = ("queued", "starting", "running", "restarting", "suspended")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("uid", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in _NAMES),
        sa.Column("created", _TIME),
        sa.Column("started", _TIME),
        sa.Column("ended", _TIME, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("result", "reason", "message")),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("replicas", "restarts", "preemptions")),
        *(sa.Column(f"{phase}_seconds", sa.Double, nullable=False) for phase in _PHASES),
        *(sa.Column(name, sa.Double, nullable=False) for name in _AMOUNTS),
        sa.Column("usage", _JSON),
        sa.Column("progress_percent", sa.Integer),
        sa.Column("log_link", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_index("jobs_by_end", "jobs", ["ended", "uid"])
    op.create_index("jobs_by_namespace", "jobs", ["namespace", "ended", "uid"])
    op.create_index("jobs_by_user", "jobs", ["user_name", "ended", "uid"])
    op.create_table(
        "job_days",
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("day", _TIME, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in _NAMES),
        *(sa.Column(name, sa.Double, nullable=False) for name in _AMOUNTS),
        sa.Column("resources", _JSON, nullable=False),
    )
    op.create_index("job_days_by_day", "job_days", ["day"])


def downgrade() -> None:
    op.drop_table("job_days")
    op.drop_table("jobs")
