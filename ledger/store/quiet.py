"""Libraries below log what passes through them where a program logs everything; what runs hold must not be there."""

from __future__ import annotations

import logging

LOGGING_NAME = "tachograph"
"""Of our engines, as SQLAlchemy names their loggers."""

for _name in ("sqlalchemy.engine.Engine", "sqlalchemy.pool.impl"):
    # Rows are logged at the lowest level, and with them contents.
    logging.getLogger(f"{_name}.{LOGGING_NAME}").setLevel(logging.WARNING)
