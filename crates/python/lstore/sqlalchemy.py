"""A dialect of SQLAlchemy over databases in the process: `create_engine("lstore:///mydata")`, or `"lstore://"` for one in memory.

Statements are those of SQLAlchemy's dialect for PostgreSQL. Servers are reached with its own drivers: `postgresql+psycopg://...`.

>>> from sqlalchemy import create_engine, text
>>> with create_engine("lstore://").connect() as connection:
...     connection.execute(text("SELECT :a + 1"), {"a": 41}).scalar()
42
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import pool
from sqlalchemy.dialects.postgresql.base import PGDialect


class LstoreDialect(PGDialect):
    """See the module."""

    name = "lstore"
    driver = "lstore"
    default_paramstyle = "numeric_dollar"
    supports_statement_cache = True
    supports_native_uuid = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_constraint_comments = False
    # Statements without a result of their own give the keys that they made back by RETURNING.
    insert_returning = update_returning = delete_returning = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver."""
        import lstore

        return lstore

    @classmethod
    def get_pool_class(cls, url: Any) -> type[pool.Pool]:
        """A database in memory goes with its connection, so that all share one."""
        return pool.QueuePool if url.database else pool.StaticPool

    def create_connect_args(self, url: Any) -> tuple[list[str], dict[str, Any]]:
        """The directory, and settings behind the question mark."""
        return [url.database or ":memory:"], dict(url.query)

    def get_isolation_level_values(self, dbapi_connection: Any) -> Any:
        """What `isolation_level` may be."""
        return ["AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Sets the level of the transactions to come."""
        dbapi_connection.rollback()
        dbapi_connection.autocommit = True
        if level != "AUTOCOMMIT":
            dbapi_connection.execute(f"SET default_transaction_isolation = '{level.lower()}'")
            dbapi_connection.autocommit = False

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """The level of the transactions to come."""
        return dbapi_connection.execute("SHOW default_transaction_isolation").fetchone()[0].upper()

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        """There is nothing between program and database that could break."""
        return False
