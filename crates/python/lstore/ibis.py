"""A backend of Ibis over databases in the process: `ibis.lstore.connect("mydata")`.

Expressions become SQL by Ibis's compiler for PostgreSQL; results come as Arrow; data frames in memory and functions of Python are read
and called where they are.

>>> import ibis
>>> import lstore.ibis
>>> backend = lstore.ibis.Backend()
>>> backend.do_connect()
>>> numbers = backend.create_table("numbers", {"a": [1, 2, 3, 4]})
>>> int(numbers.filter(numbers.a > 1).a.sum().execute())
9
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

import ibis
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow
import sqlglot.expressions as sge
from ibis.backends import UrlFromPath
from ibis.backends.sql import SQLBackend
from ibis.backends.sql.compilers.postgres import PostgresCompiler
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowSchema

from lstore import __version__, connect
from lstore.connection import Connection, literal, quoted
from lstore.cursor import Cursor
from lstore.errors import UndefinedTable

if TYPE_CHECKING:
    import pandas


def plain(schema: pyarrow.Schema) -> pyarrow.Schema:
    """A schema without views, which Ibis has no types for."""

    def type_of(kind: Any) -> Any:
        if pyarrow.types.is_string_view(kind):
            return pyarrow.string()
        return pyarrow.binary() if pyarrow.types.is_binary_view(kind) else kind

    return pyarrow.schema([pyarrow.field(field.name, type_of(field.type)) for field in schema])


def _place(name: str, schema: Optional[str]) -> str:
    """The name of a table as SQL writes it."""
    return f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)


class Compiler(PostgresCompiler):  # type: ignore[misc, unused-ignore]
    """PostgreSQL's, where functions of Python are called by their names."""

    __slots__ = ()

    def visit_ScalarUDF(self, op: Any, **kw: Any) -> Any:
        """A call."""
        return self.f[type(op).__name__.lower()](*kw.values())


class Backend(SQLBackend, UrlFromPath):  # type: ignore[misc, unused-ignore]
    """See the module."""

    name = "lstore"
    compiler = Compiler()
    supports_temporary_tables = True
    supports_create_or_replace = False

    con: Connection

    def do_connect(self, database: Union[str, "os.PathLike[str]"] = ":memory:", **settings: Any) -> None:
        """Opens the database in a directory, or one in memory, with the settings of `lstore.connect`."""
        self.con = connect(database, autocommit=True, **settings)

    @classmethod
    def from_connection(cls, con: Connection, /) -> "Backend":
        """A backend that uses a connection, which has `autocommit=True`."""
        backend = cls()
        backend.con = con
        return backend

    @property
    def version(self) -> str:
        """The version of the database."""
        return __version__

    @property
    def current_database(self) -> str:
        """The schema of tables that name no other."""
        name: str = self.con.execute("SELECT current_schema()").fetchall()[0][0]
        return name

    def list_databases(self, *, like: Optional[str] = None, catalog: Optional[str] = None) -> list[str]:
        """The schemas."""
        rows = self.con.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY nspname")
        names: list[str] = self._filter_with_like([name for (name,) in rows], like)
        return names

    def list_tables(
        self, *, like: Optional[str] = None, database: Optional[Union[str, tuple[str, str]]] = None
    ) -> list[str]:
        """The tables and views of a schema."""
        schema = database[-1] if isinstance(database, tuple) else database or self.current_database
        rows = self.con.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY table_name", (schema,)
        )
        names: list[str] = self._filter_with_like([name for (name,) in rows], like)
        return names

    def raw_sql(self, query: Union[str, sge.Expression], **kwargs: Any) -> Cursor:
        """Runs a statement in SQL."""
        return self.con.execute(query if isinstance(query, str) else query.sql(dialect=self.dialect))

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: Union[str, sge.Expression], **kwargs: Any) -> Iterator[Cursor]:
        with self.raw_sql(query) as cursor:
            yield cursor

    def get_schema(
        self, table_name: str, *, catalog: Optional[str] = None, database: Optional[str] = None
    ) -> sch.Schema:
        """The columns of a table."""
        of_schema = f"{quoted(database)}." if database else ""
        try:
            schema = self._get_schema_using_query(f"SELECT * FROM {of_schema}{quoted(table_name)}")
        except UndefinedTable as error:
            raise ibis.common.exceptions.TableNotFound(table_name) from error
        nullable = self._nullable(table_name, database or self.current_database)
        return sch.Schema({name: kind.copy(nullable=nullable.get(name, True)) for name, kind in schema.items()})

    def _nullable(self, table: str, schema: str) -> dict[str, bool]:
        rows = self.con.execute(
            "SELECT column_name, is_nullable = 'YES' FROM information_schema.columns WHERE table_name = ? AND table_schema = ?",
            (table, schema),
        )
        return dict(rows.fetchall())

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        reader = self.con.execute(f"SELECT * FROM ({query}) AS t LIMIT 0").to_arrow_reader()
        return PyArrowSchema.to_ibis(plain(reader.schema))

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.con.register(op.name, op.data.to_pyarrow(op.schema))

    def _make_memtable_finalizer(self, name: str) -> Any:
        con = self.con

        def forget() -> None:
            if not con.closed:
                con.unregister(name)

        return forget

    def _register_udfs(self, expr: ir.Expr) -> None:
        for node in expr.op().find(ops.ScalarUDF):
            kind = node.__input_type__.name.lower()
            if kind == "builtin":
                continue
            if kind not in ("python", "pyarrow"):
                raise NotImplementedError(f"functions of type {kind} are not called: use python or pyarrow")
            mapper = self.compiler.type_mapper
            taken = [mapper.to_string(one.annotation.pattern.dtype) for one in node.__signature__.parameters.values()]
            self.con.create_function(
                type(node).__name__,
                node.__func__,
                taken,
                mapper.to_string(node.dtype),
                type="native" if kind == "python" else "arrow",
                **node.__config__,
            )

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Optional[Mapping[ir.Scalar, Any]] = None,
        limit: Optional[Union[int, str]] = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pyarrow.RecordBatchReader:
        """The rows of an expression, batch by batch as they are computed."""
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        wanted = table.schema().to_pyarrow()
        reader = self.con.execute(self.compile(table, limit=limit, params=params)).to_arrow_reader()

        def batches() -> Iterator[pyarrow.RecordBatch]:
            for batch in reader:
                yield batch.rename_columns(wanted.names).cast(wanted)

        return pyarrow.RecordBatchReader.from_batches(wanted, batches())

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Optional[Mapping[ir.Scalar, Any]] = None,
        limit: Optional[Union[int, str]] = None,
        **kwargs: Any,
    ) -> Union["pandas.DataFrame", "pandas.Series[Any]", Any]:
        """The rows of an expression as pandas has them."""
        table = self.to_pyarrow_batches(expr, params=params, limit=limit).read_all()
        frame = table.to_pandas(timestamp_as_object=False)
        return expr.__pandas_result__(PandasData.convert_table(frame, expr.as_table().schema()))

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Optional[sch.IntoSchema] = None,
        database: Optional[str] = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Makes a table of an expression, of rows in memory, or without rows of a schema."""
        if obj is None and schema is None:
            raise ibis.common.exceptions.IbisError("create_table() needs rows or a schema")
        rows = None if obj is None else obj if isinstance(obj, ir.Expr) else ibis.memtable(obj)
        columns = ibis.schema(schema) if schema is not None else rows.schema()  # type: ignore[union-attr]
        place = _place(name, database)
        made = sge.Schema(this=sge.to_table(place, dialect=self.dialect), expressions=columns.to_sqlglot_column_defs(self.dialect))
        kind = sge.Properties(expressions=[sge.TemporaryProperty()]) if temp else None
        statements = [sge.Create(kind="TABLE", this=made, properties=kind).sql(self.dialect)]
        if rows is not None:
            self._run_pre_execute_hooks(rows)
            listed = ", ".join(map(quoted, columns))
            statements.append(f"INSERT INTO {place} ({listed}) {self.compile(rows)}")
        if overwrite:
            statements.insert(0, f"DROP TABLE IF EXISTS {place}")
        with self.con.transaction():
            for statement in statements:
                self.con.execute(statement)
        return self.table(name, database=database)

    def drop_table(self, name: str, /, *, database: Optional[str] = None, force: bool = False) -> None:
        """Drops a table."""
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: Optional[str] = None, force: bool = False) -> None:
        """Drops a view."""
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: Optional[str], force: bool) -> None:
        place = _place(name, database)
        self.con.execute(f"DROP {kind} {'IF EXISTS ' if force else ''}{place}")

    def create_database(self, name: str, /, *, catalog: Optional[str] = None, force: bool = False) -> None:
        """Makes a schema."""
        self.con.execute(f"CREATE SCHEMA {'IF NOT EXISTS ' if force else ''}{quoted(name)}")

    def drop_database(
        self, name: str, /, *, catalog: Optional[str] = None, force: bool = False, cascade: bool = False
    ) -> None:
        """Drops a schema."""
        self.con.execute(f"DROP SCHEMA {'IF EXISTS ' if force else ''}{quoted(name)}{' CASCADE' if cascade else ''}")

    def read_parquet(self, path: str, /, *, table_name: Optional[str] = None, **_: Any) -> ir.Table:
        """The rows of a Parquet file, which is read now."""
        return self._read(f"SELECT * FROM {literal(path)}", table_name)

    def read_csv(self, path: str, /, *, table_name: Optional[str] = None, **_: Any) -> ir.Table:
        """The rows of a CSV file, which is read now."""
        return self._read(f"SELECT * FROM {literal(path)}", table_name)

    def _read(self, query: str, name: Optional[str]) -> ir.Table:
        chosen = name or ibis.util.gen_name("lstore_file")
        self.con.register(chosen, self.con.sql(query))
        return self.table(chosen)
