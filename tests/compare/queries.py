"""Random queries and statements that change rows, over the tables and the common table expressions of the moment."""
import dataclasses

from expressions import COMPARISONS, TYPES, Expressions, Scope, Source
from tables import COLUMNS, literal
from tree import Items, node, optional

# A column made by a query is called like the columns of tables of its type, so that names are shared.
NAMES = {type_: name for name, type_ in COLUMNS.items()} | {"interval": "iv", "bytea": "by", "ints": "arr", "texts": "tarr"}
PLAIN = ["int4", "int2", "int8", "num", "text", "char", "varchar", "bool", "date", "ts"]


@dataclasses.dataclass
class Case:
    """Statements that are sent one after the other; `root` is the tree of the one that may be cut down."""

    family: str
    statements: list
    root: object
    ordered: bool = False


class Queries(Expressions):
    """Makes whole statements."""

    def __init__(self, rng, tables, without=()):
        super().__init__(rng, without)
        self.tables = tables
        self.named = {t.name: t.columns for t in tables}
        self.count = 0

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # FROM.

    def from_(self, depth, outer, keyed=False):
        """A FROM clause and the scope of what it names."""
        if not keyed and depth > 0 and self.chance(0.35):
            return self.join(depth - 1, outer)
        item, source = self.item(depth, outer, set(), keyed)
        return item, Scope([source], outer)

    def item(self, depth, outer, taken, keyed=False):
        choice = self.rng.random()
        if not keyed and depth > 0 and choice < 0.15:
            return self.derived(depth - 1, None)
        if not keyed and choice < 0.2:
            name = self.fresh("g")
            return node("item", "generate_series(1, ", self.pick(["3", "0", "5"]), f") AS {name}(k)"), Source(name, {"k": "int4"})
        if not keyed and choice < 0.25:
            name, types = self.fresh("v"), [self.pick(PLAIN), self.pick(PLAIN)]
            return node("item", "(", self.values(types), f") AS {name}(p, q)"), Source(name, dict(zip("pq", types)))
        names = [n for n in self.named if not keyed or "id" in self.named[n]]
        table = self.pick(names)
        if table not in taken and self.chance(0.5):
            taken.add(table)
            return node("item", table), Source(table, self.named[table])
        alias = self.pick([a for a in "abxyz" if a not in taken])
        taken.add(alias)
        return node("item", f"{table}{self.pick([' ', ' AS '])}{alias}"), Source(alias, self.named[table])

    def derived(self, depth, outer, lateral=""):
        types = [self.pick(TYPES) for _ in range(self.rng.randint(1, 3))]
        columns = {}
        for type_ in types:
            name = NAMES[type_]
            while name in columns:
                name += "2"
            columns[name] = type_
        # A name that a column has, too, must still be the table's.
        alias = self.fresh("q") if self.chance(0.9) else self.pick(["k", "s", "b"])
        spelled = f"({', '.join(columns)})"
        order = ""
        if set(types) <= set(PLAIN) and self.chance(0.2):
            keys = ", ".join(f"{i}{self.pick(['', ' DESC'])}" for i in range(1, len(types) + 1))
            order = optional(f" ORDER BY {keys}", self.pick(["", " LIMIT 2", " OFFSET 1", " FETCH FIRST 3 ROWS ONLY"]))
        query = self.query_of(types, depth, outer)
        return node("item", f"{lateral}(", query, order, f") AS {alias}{spelled}"), Source(alias, columns)

    def join(self, depth, outer):
        taken = set()
        left, first = self.item(depth, outer, taken)
        if self.chance(0.15):
            right, second = self.derived(depth, Scope([first], outer), "LATERAL ")
            scope = Scope([first, second], outer)
            how = self.pick([" CROSS JOIN ", ", ", " LEFT JOIN ", " LEFT JOIN ", " JOIN "])
            if "CROSS" in how or how == ", ":
                return node("from", left, how, right), scope
            condition = node("bool", "true") if self.chance(0.5) else self.condition("LEFT JOIN", scope, depth)
            return node("from", left, how, right, " ON ", condition), scope
        if self.chance(0.1):
            right, second = self.function_of(first)
            how = self.pick([" CROSS JOIN ", ", ", " JOIN LATERAL ", " LEFT JOIN "])
            return node("from", left, how, right, " ON true" if "JOIN " in how and "CROSS" not in how else ""), Scope([first, second], outer)
        right, second = self.item(depth, outer, taken)
        scope = Scope([first, second], outer)
        shared = [c for c in first.columns if c in second.columns]
        choice = self.rng.randrange(8)
        how = self.pick(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        if choice == 0:
            return node("from", left, self.pick([" CROSS JOIN ", ", "]), right), scope
        if choice == 1 and shared:
            return node("from", left, f" {how} ", right, f" USING ({self.pick(shared)})"), scope
        if choice == 2 and shared:
            return node("from", left, f" NATURAL {how} ", right), scope
        return node("from", left, f" {how} ", right, " ON ", self.condition(how, scope, depth)), scope

    def function_of(self, source):
        """A function in FROM over the columns of what stands before it."""
        numbers = [f"{source.name}.{c}" for c, t in source.columns.items() if t == "int4"] or ["2"]
        name = self.fresh("g")
        if self.chance(0.5):
            return node("item", f"generate_series(1, least({self.pick(numbers)}, 4)) AS {name}(k)"), Source(name, {"k": "int4"})
        if self.chance(0.3):
            call = f"unnest(ARRAY[{self.pick(numbers)}, 3]) WITH ORDINALITY AS {name}(k, j)"
            return node("item", call), Source(name, {"k": "int4", "j": "int8"})
        return node("item", f"unnest(ARRAY[{self.pick(numbers)}, NULL, 2]) AS {name}(k)"), Source(name, {"k": "int4"})

    def condition(self, how, scope, depth):
        # A full join needs a condition that can be hashed in PostgreSQL.
        first, second = scope.sources[:2]
        pairs = [(a, b) for a, t in first.columns.items() for b, u in second.columns.items() if t == u]
        if pairs and (how == "FULL JOIN" or self.chance(0.7)):
            a, b = self.pick(pairs)
            equal = node("bool", f"({first.name}.{a} = {second.name}.{b})")
            if how == "FULL JOIN" or self.chance(0.5):
                return equal
            return node("bool", "(", equal, " AND ", self.expr("bool", depth, scope), ")")
        return node("bool", "false") if how == "FULL JOIN" else self.expr("bool", depth, scope)

    # Queries with columns of given types.

    def query_of(self, types, depth, outer):
        """A query for another to use: its rows come in no order."""
        kind = "query:" + ",".join(types)
        choice = self.rng.random()
        if depth > 0 and choice < 0.12:
            return node(kind, self.set_operation(types, depth - 1, outer))
        if choice < 0.22 and set(types) <= set(PLAIN):
            return node(kind, self.grouped(types, depth - 1, outer))
        if choice < 0.27 and outer is None or choice < 0.24 and set(types) <= set(PLAIN):
            return node(kind, self.values(types))
        return node(kind, self.select(types, depth - 1, outer))

    def select(self, types, depth, outer):
        item, scope = self.from_(depth, outer)
        distinct = optional("DISTINCT ") if self.chance(0.2) else ""
        columns = Items([self.expr(t, self.rng.randint(0, max(depth, 0)), scope) for t in types], least=len(types))
        return node("select", "SELECT ", distinct, columns, " FROM ", item, self.where(depth, scope))

    def where(self, depth, scope):
        return optional(" WHERE ", self.expr("bool", depth, scope)) if self.chance(0.6) else ""

    def values(self, types):
        # Values of other types come first, so that the last row says what the columns are.
        narrower = {"num": ["int4", "int8", "num"], "int8": ["int4", "int8"], "f8": ["num", "int4", "f8"], "ts": ["date", "ts"]}
        count = self.rng.randint(1, 3)

        def value(type_, row):
            if row == count - 1:
                return literal(type_, self.rng)
            if self.chance(0.15):
                return node(type_, "NULL")
            return node(type_, str(literal(self.pick(narrower.get(type_, [type_])), self.rng)))

        rows = [node("row", "(", Items([value(t, row) for t in types], least=len(types)), ")") for row in range(count)]
        return node("values", "VALUES ", Items(rows, least=len(rows)))

    def set_operation(self, types, depth, outer):
        operation = self.pick(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        return node("set", "(", self.part(types, depth, outer), f") {operation} (", self.part(types, depth, outer), ")")

    def part(self, types, depth, outer):
        """A part of a set operation, which may take the first of its rows."""
        query = self.query_of(types, depth, outer)
        if not set(types) <= set(PLAIN) or not self.chance(0.15):
            return query
        keys = ", ".join(f"{i}{self.pick(['', ' DESC', ' NULLS FIRST'])}" for i in range(1, len(types) + 1))
        return node("query:" + ",".join(types), query, f" ORDER BY {keys}", optional(self.pick(["", " LIMIT 2", " OFFSET 1", " LIMIT 0"])))

    def scalar_query(self, type_, depth, outer):
        kind = "query:" + type_
        if self.chance(0.6) and self.aggregate(type_, 0, outer) is not None:
            item, scope = self.from_(depth, outer)
            return node(kind, "SELECT ", self.aggregate(type_, depth, scope), " FROM ", item, self.where(depth, scope))
        return node(kind, self.select([type_], depth, outer), " ORDER BY 1", self.pick(["", " DESC", " NULLS FIRST"]), " LIMIT 1")

    def array_query(self, type_, depth, outer):
        return node("query:" + type_, self.select([type_], depth, outer), " ORDER BY 1", self.pick(["", " DESC"]))

    # Groups.

    def aggregate(self, type_, depth, scope):
        """An aggregate of a type, or nothing where there is none."""
        # An argument of outer columns alone would make it an aggregate of the outer query.
        own = Scope(scope.sources) if scope is not None else None

        def e(t, d=depth):
            return self.expr(t, d, own)

        distinct = self.pick(["", "", "", "DISTINCT "])
        some = self.pick(PLAIN)
        made = {
            "int8": lambda: self.pick([["count(*)"], ["count(", distinct, e(some), ")"],
                                       ["sum(", distinct, e(self.pick(["int4", "int2"])), ")"], ["max(", e("int8"), ")"]]),
            "int4": lambda: [self.pick(["min(", "max("]), e("int4"), ")"],
            "int2": lambda: [self.pick(["min(", "max("]), e("int2"), ")"],
            "num": lambda: self.pick([["sum(", distinct, e("num"), ")"], ["avg(", distinct, e(self.pick(["int4", "num", "int8"])), ")"],
                                      ["max(", e("num"), ")"],
                                      [self.pick(["var_pop(", "stddev(", "variance(", "stddev_pop("]), e(self.pick(["int4", "num"]), 0), ")"]]),
            "f8": lambda: self.pick([["sum(", e("f8", 0), ")"], ["avg(", e("f8", 0), ")"], ["min(", e("f8"), ")"],
                                     ["var_pop(", e("f8", 0), ")"], ["corr(", e("f8", 0), ", ", e("f8", 0), ")"]]),
            "bool": lambda: [self.pick(["bool_and(", "bool_or(", "every("]), e("bool"), ")"],
            "date": lambda: [self.pick(["min(", "max("]), e("date"), ")"],
            "ts": lambda: [self.pick(["min(", "max("]), e("ts"), ")"],
            "char": lambda: [self.pick(["min(", "max("]), e("char"), ")"],
            "text": lambda: self.text_aggregate(e, distinct),
            "ints": lambda: self.ordered_aggregate("array_agg(", "int4", e, ""),
        }.get(type_)
        if made is None:
            return None
        parts = made()
        if self.chance(0.15):
            parts = [*parts, optional(" FILTER (WHERE ", e("bool"), ")")]
        return node(type_, *parts)

    def text_aggregate(self, e, distinct):
        if self.chance(0.5):
            return [self.pick(["min(", "max("]), e(self.pick(["text", "varchar"])), ")"]
        return self.ordered_aggregate("string_agg(", "text", e, ", ','")

    def ordered_aggregate(self, function, type_, e, more):
        argument = str(e(type_, 1))
        direction = self.pick(["", " DESC", " NULLS FIRST"])
        return [function, self.pick(["", "DISTINCT "]), argument, more, " ORDER BY ", argument, direction, ")"]

    def grouped(self, types, depth, outer):
        """SELECT of groups: each column is a key or an aggregate."""
        item, scope = self.from_(depth, outer)
        own = [name for level, name, t in scope.visible() if level == 0 and t in PLAIN]
        typed = {name: t for level, name, t in scope.visible() if level == 0}
        keys = []
        for name in self.rng.sample(own, min(len(own), self.rng.randint(0, 2))):
            forms = {"int4": "({} % 2)", "text": "upper({})", "date": "({} + 1)", "bool": "(NOT {})", "num": "abs({})"}
            form = forms.get(typed[name], "{}") if self.chance(0.3) else "{}"
            typed.setdefault(form.format(name), typed[name])
            keys.append(node("key", form.format(name)))
        columns = []
        for type_ in types:
            fits = [k for k in keys if typed[str(k)] == type_]
            if fits and self.chance(0.6):
                columns.append(node(type_, str(self.pick(fits))))
                continue
            made = self.aggregate(type_, self.rng.randint(0, max(depth, 0)), scope)
            columns.append(made if made is not None else literal(type_, self.rng))
        having = ""
        if self.chance(0.3):
            having = optional(" HAVING ", node("bool", self.aggregate("int8", 0, scope), f" {self.pick(COMPARISONS)} ",
                                               self.pick(["0", "1", "2"])))
        if not keys and not any("(" in str(c) for c in columns):
            columns[0] = literal(types[0], self.rng)
        return node("select", "SELECT ", Items(columns, least=len(types)), " FROM ", item, self.where(depth, scope),
                    self.group_by(keys), having)

    def group_by(self, keys):
        if not keys:
            return ""
        spelled = [str(k) for k in keys]
        choice = self.rng.randrange(8)
        both = ", ".join(spelled)
        if choice == 0:
            return optional(f" GROUP BY ROLLUP ({both})")
        if choice == 1:
            return optional(f" GROUP BY CUBE ({both})")
        if choice == 2:
            return optional(f" GROUP BY GROUPING SETS (({both}), ({spelled[0]}), ())")
        if choice == 3:
            return optional(f" GROUP BY {spelled[-1]}, ROLLUP ({both})")
        return optional(" GROUP BY ", Items(keys))

    # Windows, over one table with a key, so that the order of rows is total where it counts.

    def windowed(self, depth):
        item, scope = self.from_(depth, None, keyed=True)
        source = scope.sources[0]
        names = list(source.columns)
        columns, types, windows = [], [], []
        base = self.fresh("w")
        partition = f"PARTITION BY {source.name}.{self.pick(names)}"
        ordered_base = self.chance(0.3)
        windows.append(f"{base} AS ({partition}{f' ORDER BY {source.name}.id' if ordered_base else ''})")
        if not ordered_base and self.chance(0.3):
            second = self.fresh("w")
            windows.append(f"{second} AS ({base} ORDER BY {source.name}.{self.pick(names)}, {source.name}.id)")
        else:
            second = base if ordered_base else None
        for _ in range(self.rng.randint(1, 3)):
            type_, call, numbered = self.window_call(depth, scope)
            columns.append(node(type_, call, " OVER ", self.over(source, names, base, ordered_base, second, numbered)))
            types.append(type_)
        columns.append(node("int4", f"{source.name}.id"))
        types.append("int4")
        return node("select", "SELECT ", Items(columns), " FROM ", item, self.where(depth, scope),
                    optional(" WINDOW ", ", ".join(windows))), types

    def window_call(self, depth, scope):
        """The type of a call, the call, and whether it needs a total order."""
        choice = self.rng.randrange(14)
        type_ = self.pick(PLAIN)
        value = self.expr(type_, min(depth, 1), scope)
        if choice == 12:
            text = self.expr("text", min(depth, 1), scope)
            return "text", node("text", "string_agg(", text, ", ", self.pick(["','", "'-'"]), ")"), True
        if choice == 13:
            by = f"{scope.sources[0].name}.id"
            return type_, node(type_, self.pick(["lag(", "lead(", "nth_value("]), value, f", {by})"), True
        if choice < 2:
            return "int8", self.pick(["row_number()", "rank()", "dense_rank()"]), True
        if choice == 2:
            return "f8", self.pick(["percent_rank()", "cume_dist()"]), True
        if choice == 3:
            return "int4", f"ntile({self.pick(['1', '2', '3'])})", True
        if choice < 6:
            return type_, node(type_, self.pick(["lag(", "lead("]), value, self.pick(["", ", 2", ", 0"]), ")"), True
        if choice < 8:
            return type_, node(type_, self.pick(["first_value(", "last_value("]), value, ")"), True
        if choice == 8:
            return type_, node(type_, "nth_value(", value, ", 2)"), True
        type_ = self.pick(["int8", "num", "int4", "bool"])
        made = self.aggregate(type_, min(depth, 1), scope)
        if "DISTINCT" in str(made):
            made = node("int8", "count(*)")
            type_ = "int8"
        return type_, made, False

    def over(self, source, names, base, ordered_base, second, numbered):
        id_ = f"{source.name}.id"
        order = f"ORDER BY {source.name}.{self.pick(names)}{self.pick(['', ' DESC', ' NULLS FIRST'])}, {id_}"
        choice = self.rng.randrange(5)
        if choice == 0 and second:
            return second
        if choice == 1 and not ordered_base:
            return node("over", f"({base} {order}", optional(self.frame(False)), ")")
        if choice == 2 and not numbered:
            return base
        partition = optional(f"PARTITION BY {source.name}.{self.pick(names)} ") if self.chance(0.6) else ""
        if not numbered and self.chance(0.4):
            name = self.pick(names)
            frame = optional(self.frame(True, source.columns[name]))
            return node("over", "(", partition, optional(f"ORDER BY {source.name}.{name}{self.pick(['', ' DESC'])}", frame), ")")
        return node("over", "(", partition, order, optional(self.frame(False)), ")")

    def frame(self, peers, type_=None):
        """A frame; offsets of a range are those of the one column of the order."""
        if self.chance(0.5):
            return ""
        unit = self.pick(["RANGE", "GROUPS"] if peers else ["ROWS", "GROUPS"])
        days = ["interval '1 day'", "'1 month'"]
        of_range = {"int4": ["1", "2"], "int2": ["1", "3"], "int8": ["2"], "num": ["0.5", "1"], "date": days, "ts": days}
        offsets = of_range.get(type_, []) if unit == "RANGE" else ["0", "1", "2"]
        starts = ["UNBOUNDED PRECEDING", "CURRENT ROW"] + [f"{offset} PRECEDING" for offset in offsets]
        ends = ["UNBOUNDED FOLLOWING", "CURRENT ROW"] + [f"{offset} FOLLOWING" for offset in offsets]
        exclude = self.pick(["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP"])
        return f" {unit} BETWEEN {self.pick(starts)} AND {self.pick(ends)}{exclude}"
