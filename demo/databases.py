"""Which databases can be asked: three kinds, told by the scheme of an SQLAlchemy URL."""

from typing import Literal

Engine = Literal["sqlite", "postgresql", "mysql"]
"""MariaDB counts as MySQL."""
ENGINES: dict[str, Engine] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
DRIVERS: dict[Engine, str] = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
}


def engine_of(url: str) -> Engine | None:
    """The kind of database that a URL such as `postgresql://USER@HOST/NAME` means; None for any other."""
    scheme, separator, _ = url.partition("://")
    return ENGINES.get(scheme.partition("+")[0]) if separator else None
