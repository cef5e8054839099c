"""Makes the expected answers of the TPC-H queries, as a sqllogictest file, with DuckDB as the oracle.

    pip install duckdb
    python3 tests/sql/tpch_answers.py DATA 0.01 > tests/sql/tpch_sf001.slt
    python3 tests/sql/tpch_answers.py DATA 0.1  > tests/sql/tpch_sf01.slt

DATA holds the eight tables as `region.tbl`, `nation.tbl` and so on: `|` after every field, no header, one row a
line, as the `tpchgen` crate displays them (and `tpchgen-cli` and dbgen write them). The queries are the files
`crates/lab/queries/q01.sql` to `q22.sql`.

The rules of the answers:

* Decimals and floats have exactly 2 digits, rounded half away from zero from the exact value (floats as
  `{:.2}` prints them). Dates are YYYY-MM-DD, integers plain, text as it is, NULL is `NULL`, empty text is
  `(empty)`.
* Engines keep quotients (averages, shares) to different numbers of digits. A quotient that would say too
  little with 2 digits is multiplied in a query around the query: see SCALED. A quotient so close to a rounding
  boundary that a rightful engine may print it otherwise is an error.
* Where the query's own `order by` decides the place of every row, the rows are compared in that order
  (`nosort`), else as a set (`rowsort`). Where a `limit` would cut through equal rows, that is an error.
* The fraction of Q11 is 0.0001 divided by the scale factor.
* A result of more than `--hash-above` values is given as its MD5.
"""

import argparse
import hashlib
import pathlib
import re
import sys
from decimal import ROUND_HALF_UP, Context, Decimal

import duckdb

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

SCHEMA = {
    "region": "r_regionkey integer, r_name varchar, r_comment varchar",
    "nation": "n_nationkey integer, n_name varchar, n_regionkey integer, n_comment varchar",
    "part": "p_partkey bigint, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size integer, "
    "p_container varchar, p_retailprice decimal(15,2), p_comment varchar",
    "supplier": "s_suppkey bigint, s_name varchar, s_address varchar, s_nationkey integer, s_phone varchar, "
    "s_acctbal decimal(15,2), s_comment varchar",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost decimal(15,2), "
    "ps_comment varchar",
    "customer": "c_custkey bigint, c_name varchar, c_address varchar, c_nationkey integer, c_phone varchar, "
    "c_acctbal decimal(15,2), c_mktsegment varchar, c_comment varchar",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus varchar, o_totalprice decimal(15,2), "
    "o_orderdate date, o_orderpriority varchar, o_clerk varchar, o_shippriority integer, o_comment varchar",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, "
    "l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), "
    "l_returnflag varchar, l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, "
    "l_shipinstruct varchar, l_shipmode varchar, l_comment varchar",
}

# The places of the `order by` columns in each query's result.
ORDER_BY = {
    1: (0, 1), 2: (0, 2, 1, 3), 3: (1, 2), 4: (0,), 5: (1,), 6: (), 7: (0, 1, 2), 8: (0,), 9: (0, 1), 10: (2,),
    11: (1,), 12: (0,), 13: (1, 0), 14: (), 15: (0,), 16: (3, 0, 1, 2), 17: (), 18: (4, 3), 19: (), 20: (0,),
    21: (1, 0), 22: (0,),
}  # fmt: skip

# The quotients of each query: what each is multiplied by, and how many digits after the point an engine with
# decimal division keeps of it at the least (before the multiplication).
QUOTIENTS = {
    1: {"avg_qty": (100, 6), "avg_price": (1, 6), "avg_disc": (100, 6)},
    8: {"mkt_share": (10000, 8)},
    14: {"promo_revenue": (10000, 8)},
    17: {"avg_yearly": (100, 6)},
}

# The query around a query: its select list and its order.
SCALED = {
    1: (
        "l_returnflag, l_linestatus, sum_qty, sum_base_price, sum_disc_price, sum_charge,\n"
        "    avg_qty * 100 as avg_qty, avg_price, avg_disc * 100 as avg_disc, count_order",
        "l_returnflag, l_linestatus",
    ),
    8: ("o_year, mkt_share * 10000 as mkt_share", "o_year"),
    14: ("promo_revenue * 10000 as promo_revenue", None),
    17: ("avg_yearly * 100 as avg_yearly", None),
}

# How near to a rounding boundary a printed quotient may come.
MARGIN = Decimal("0.0001")
EXACT = Context(prec=80)
CENT = Decimal("0.01")


def main():
    arguments = parse_arguments()
    database = load(arguments.data)
    lines = [
        f"# TPC-H, scale factor {arguments.scale_factor}: the 22 queries and their answers.",
        "# The data is loaded beforehand. Made by tpch_answers.py, which tells how values are written.",
    ]
    for number in range(1, 23):
        lines += ["", *record(database, number, arguments)]
    print("\n".join(lines))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="the folder of the .tbl files")
    parser.add_argument("scale_factor", type=Decimal, help="the scale factor of the data, for Q11: 0.01, 0.1, 1")
    parser.add_argument("--queries", type=pathlib.Path, default=REPOSITORY / "crates/lab/queries",
                        help="the folder of q01.sql to q22.sql (default: %(default)s)")  # fmt: skip
    parser.add_argument("--hash-above", type=int, default=10000, metavar="VALUES",
                        help="give larger results as an MD5; 0: never (default: %(default)s)")  # fmt: skip
    return parser.parse_args()


def load(folder):
    """A database in memory that holds the tables."""
    database = duckdb.connect()
    for table, columns in SCHEMA.items():
        database.execute(f"create table {table} ({columns})")
        names = [column.split()[0] for column in columns.split(", ")]
        # Every line ends in `|`, which reads as one more, empty column.
        fields = ", ".join(f"'{name}': 'varchar'" for name in [*names, "nothing"])
        database.execute(
            f"insert into {table} select {', '.join(names)} from read_csv(?, delim = '|', header = false, quote = '', "
            f"escape = '', auto_detect = false, nullstr = '\\N', columns = {{{fields}}})",
            [str(folder / f"{table}.tbl")],
        )
    return database


def record(database, number, arguments):
    """The lines of one query's record: its title, its statement and its answer."""
    text = (arguments.queries / f"q{number:02}.sql").read_text()
    title = text.split("\n", 1)[0].removeprefix("-- ")
    statement = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE).strip().removesuffix(";")
    if number == 11:
        statement = statement.replace("0.0001", format((Decimal("0.0001") / arguments.scale_factor).normalize(), "f"))
    in_order = order_is_total(database, number, statement)
    if number in SCALED:
        columns, order = SCALED[number]
        statement = f"select\n    {columns}\nfrom (\n{statement}\n) as answer"
        if order:
            statement += f"\norder by\n    {order}"

    result = database.execute(statement)
    columns = [name for name, *_ in result.description]
    types = "".join(type_letter(str(column[1])) for column in result.description)
    rows = result.fetchall()
    for row in rows:
        for column, value in zip(columns, row):
            check_boundary(number, column, value)
    rows = [[printed(value) for value in row] for row in rows]
    if not in_order:
        rows.sort()

    lines = [f"# {title}"]
    count = len(rows) * len(columns)
    hashed = 0 < arguments.hash_above < count
    if hashed:
        lines.append(f"hash-threshold {arguments.hash_above}")
    lines += [f"query {types} {'nosort' if in_order else 'rowsort'}", *f"{statement};".split("\n"), "----"]
    if hashed:
        digest = hashlib.md5("".join(f"{value}\n" for row in rows for value in row).encode()).hexdigest()
        lines += [f"{count} values hashing to {digest}", "", "hash-threshold 0"]
    else:
        # Runs of spaces are one in the comparison.
        lines += [" ".join(" ".join(row).split()) for row in rows]
    return lines


def order_is_total(database, number, statement):
    """Whether the query's order decides the place of every row; fails where it does not decide which rows."""
    limit = re.search(r"\nlimit (\d+)$", statement)
    rows = database.execute(statement[: limit.start()] if limit else statement).fetchall()
    keys = [tuple(row[place] for place in ORDER_BY[number]) for row in rows]
    kept = int(limit[1]) if limit else len(keys)
    if 0 < kept < len(keys) and keys[kept - 1] == keys[kept]:
        sys.exit(f"Q{number}: the limit cuts through rows that its order does not tell apart")
    return len(set(keys[:kept])) == len(keys[:kept])


def type_letter(name):
    if name.startswith("DECIMAL") or name in ("DOUBLE", "FLOAT"):
        return "R"
    return "I" if name.endswith("INT") or name == "INTEGER" else "T"


def check_boundary(number, column, value):
    """Fails where a quotient is too near to a rounding boundary."""
    if value is None or column not in QUOTIENTS.get(number, {}):
        if isinstance(value, float):
            sys.exit(f"Q{number}: {column} is a float, and not in the list of quotients")
        return
    factor, digits = QUOTIENTS[number][column]
    margin = max(MARGIN, 2 * factor * Decimal(10) ** -digits)
    distance = abs(EXACT.remainder(abs(Decimal(value)), CENT) - CENT / 2)
    if distance < margin:
        sys.exit(f"Q{number}: {column} = {value} is within {margin} of a rounding boundary: choose another factor")


def printed(value):
    if value is None:
        return "NULL"
    if isinstance(value, Decimal):
        return str(value.quantize(CENT, rounding=ROUND_HALF_UP, context=EXACT))
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value) or "(empty)"


if __name__ == "__main__":
    main()
