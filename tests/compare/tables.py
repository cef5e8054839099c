"""Random tables: few values of each type, so that there are duplicates, and NULLs; names of columns are shared by tables."""
from tree import Node, node

COLUMNS = {
    "k": "int4", "i": "int2", "j": "int8", "n": "num", "w": "num", "f": "f8", "s": "text", "c": "char", "v": "varchar",
    "b": "bool", "d": "date", "ts": "ts",
}
SPELLED = {
    "int2": "smallint", "int4": "int", "int8": "bigint", "num": "numeric(8,2)", "f8": "double precision", "text": "text",
    "char": "char(3)", "varchar": "varchar(5)", "bool": "boolean", "date": "date", "ts": "timestamp",
}
# Columns whose declaration says less than the type of their values does, and values that only they hold.
DECLARED = {"w": "numeric"}
OF_COLUMNS = {
    "w": ["0", "1", "1.5", "1.50", "1.500", "-2.25", "0.01", "3", "10.0", "0.1234567890123456789", "12345678901234567890123.5"],
}
VALUES = {
    "int2": ["0", "1", "2", "3", "-1", "5", "32767"],
    "int4": ["0", "1", "2", "3", "-2", "5", "10", "2147483647"],
    "int8": ["0", "1", "2", "3", "-3", "7", "4294967296"],
    "num": ["0", "1", "1.50", "2.25", "-2.50", "0.01", "3", "999999.99"],
    "f8": ["0", "1", "2.5", "0.5", "-1.5", "3.5", "1e10"],
    "text": ["''", "'a'", "'b'", "'ab'", "'A'", "'abc '", "'a.c'", "'é1'", "'10'"],
    "char": ["'a'", "'b'", "'ab'", "'a  '", "''", "'abc'"],
    "varchar": ["'a'", "'b'", "'ab'", "'a  '", "''", "'abcde'"],
    "bool": ["true", "false"],
    "date": ["'2020-01-31'", "'2020-02-29'", "'2021-03-01'", "'1999-12-31'", "'2020-01-01'"],
    "ts": ["'2020-01-31 10:00:00'", "'2020-02-29 23:59:59.5'", "'2021-03-01 00:00:00'", "'1999-12-31 12:30:00.000001'"],
}


class Table:
    """A table: its name, its columns, and the statements that make it."""

    def __init__(self, name, rng, without=()):
        self.name = name
        chosen = [c for c in COLUMNS if c == "k" or rng.random() < 0.6 and COLUMNS[c] not in without]
        rng.shuffle(chosen)
        self.columns = {"id": "int4", **{c: COLUMNS[c] for c in chosen}}
        keyed = rng.random() < 0.5
        spelled = ", ".join(f"{c} {DECLARED.get(c, SPELLED[t])}" for c, t in list(self.columns.items())[1:])
        self.statements = [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} (id int {'PRIMARY KEY' if keyed else 'NOT NULL'}, {spelled})",
        ]
        rows = rng.choice([0, 1, 3, 5, 8, 12])
        if rows:
            lines = ", ".join(f"({i}, {', '.join(self.value(c, t, rng) for c, t in list(self.columns.items())[1:])})"
                              for i in range(1, rows + 1))
            self.statements.append(f"INSERT INTO {name} VALUES {lines}")
        if rng.random() < 0.3:
            self.statements.append(f"CREATE INDEX ON {name} ({rng.choice(list(self.columns)[1:])})")

    @staticmethod
    def value(column, type_, rng):
        return "NULL" if rng.random() < 0.2 else rng.choice(OF_COLUMNS.get(column, VALUES[type_]))


def literal(type_, rng):
    """A constant of a type, as a node."""
    choice = rng.choice
    if type_ == "int4":
        return node(type_, choice(["0", "1", "2", "3", "-1", "5", "10"]))
    if type_ in ("int2", "int8"):
        return node(type_, choice(["0", "1", "2", "3", "7"]), f"::{SPELLED[type_]}")
    if type_ == "num":
        return node(type_, choice(["0.5", "1.0", "2.25", "-1.50", "100.001", "3::numeric"]))
    if type_ == "f8":
        return node(type_, choice(["0.5", "2", "-1.5", "3"]), "::float8")
    if type_ == "text":
        return node(type_, choice(["'a'", "'b'", "''", "'ab'", "'A'", "'abc '", "'%b'"]), choice(["", "::text"]))
    if type_ in ("char", "varchar"):
        return node(type_, choice(["'a'", "'ab'", "'b  '", "''"]), f"::{SPELLED[type_]}")
    if type_ == "bool":
        return node(type_, choice(["true", "false", "NULL::bool"]))
    if type_ == "date":
        return node(type_, "date ", choice(VALUES["date"]))
    if type_ == "ts":
        return node(type_, "timestamp ", choice(VALUES["ts"]))
    if type_ == "interval":
        return node(type_, "interval ", choice(["'1 day'", "'1 month'", "'36 hours'", "'1 year 2 days'", "'-1 month'",
                                                "'1.5 hours'", "'90 minutes'"]))
    if type_ == "bytea":
        return node(type_, choice(["'\\x00ff'", "'\\x'", "'\\x6162'"]), "::bytea")
    if type_ == "ints":
        return node(type_, choice(["ARRAY[1, 2, 3]", "'{1,NULL,3}'::int[]", "ARRAY[]::int[]", "('{5,2}')::int[]"]))
    if type_ == "texts":
        return node(type_, choice(["ARRAY['a', 'b']", "'{a,NULL,\"x y\"}'::text[]", "('{a,b}')::text[]", "ARRAY[]::text[]"]))
    return Node(type_, ["NULL"])
