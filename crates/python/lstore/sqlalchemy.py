"""A dialect of SQLAlchemy over databases in the process: `create_engine("lstore:///mydata")`, or `"lstore://"` for one in memory.

Statements are those of SQLAlchemy's dialect for PostgreSQL. Servers are reached with its own drivers: `postgresql+psycopg://...`.

>>> from sqlalchemy import create_engine, text
>>> with create_engine("lstore://").connect() as connection:
...     connection.execute(text("SELECT :a + 1"), {"a": 41}).scalar()
42
"""

from __future__ import annotations

import decimal
import json
from types import ModuleType
from typing import Any, cast

from sqlalchemy import pool, types, util
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect
from sqlalchemy.engine import processors


def _of_json(dialect: Any) -> Any:
    """The driver gives what a JSON text says; a deserializer of the program's gets the text again."""
    given = dialect._json_deserializer
    return None if given is None else lambda value: None if value is None else given(json.dumps(value))


class _Json(JSON):
    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _of_json(dialect)


class _Jsonb(JSONB):
    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _of_json(dialect)


class _Exact:
    """`numeric` comes as `Decimal`, `double precision` as `float`; `asdecimal` says what is wanted."""

    def bind_processor(self, dialect: Any) -> Any:
        return None

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        is_exact, wanted = coltype == "numeric", cast("types.Numeric[Any]", self)
        if wanted.asdecimal:
            scale = wanted._effective_decimal_return_scale
            return None if is_exact else processors.to_decimal_processor_factory(decimal.Decimal, scale)
        return processors.to_float if is_exact else None


class _Numeric(_Exact, types.Numeric[Any]):
    pass


class _Float(_Exact, types.Float[Any]):
    pass


class _Compiler(PGCompiler):
    def fetch_clause(self, select: Any, *given: Any, **kw: Any) -> str:
        """`LIMIT` for `FETCH FIRST`, which takes a number but no expression here."""
        options = select._fetch_clause_options or {}
        if options.get("percent") or options.get("with_ties"):
            text: str = super().fetch_clause(select, *given, **kw)  # type: ignore[no-untyped-call, unused-ignore]
            return text
        parts = {"LIMIT": select._fetch_clause, "OFFSET": select._offset_clause}
        return "".join(f"\n {word} {self.process(of, **kw)}" for word, of in parts.items() if of is not None)


class LstoreDialect(PGDialect):
    """See the module."""

    name = "lstore"
    driver = "lstore"
    default_paramstyle = "numeric_dollar"
    supports_statement_cache = True
    supports_native_uuid = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    statement_compiler = _Compiler
    supports_constraint_comments = False
    # There are no types of their own for the values of an Enum.
    supports_native_enum = False
    colspecs = util.update_copy(
        PGDialect.colspecs,
        {types.JSON: _Json, JSON: _Json, JSONB: _Jsonb, types.Numeric: _Numeric, types.Float: _Float},
    )
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
