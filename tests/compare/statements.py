"""Whole cases by family: what is sent to both servers and compared."""
from expressions import TYPES, Scope, Source
from operators import Operators
from queries import NAMES, PLAIN, Case, Queries
from tree import Items, node, optional

SORTABLE = set(TYPES)


class Statements(Operators, Queries):
    """Makes a case; the family tells which constructs it is about."""

    def __init__(self, rng, tables, families=None, without=()):
        super().__init__(rng, tables, without)
        self.families = families or FAMILIES

    def case(self):
        family = self.pick(self.families)
        made = getattr(self, family)()
        return made

    def depth(self):
        return self.pick([1, 2, 2, 3])

    def types(self, most=3, kinds=TYPES):
        return [self.pick(kinds) for _ in range(self.rng.randint(1, most))]

    def query_case(self, family, query, types):
        """A query at the top; in half of the cases its rows are put in a total order."""
        if not set(types) <= SORTABLE or self.chance(0.5):
            return Case(family, [query], query)
        keys = [f"{i}{self.pick(['', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}" for i in range(1, len(types) + 1)]
        limit = ""
        if self.chance(0.3):
            limit = optional(f" LIMIT {self.pick('0123')}", optional(f" OFFSET {self.pick('012')}"))
        root = node("top", query, f" ORDER BY {', '.join(keys)}", limit)
        return Case(family, [root], root, ordered=True)

    def values_(self):
        kinds = TYPES + ["interval", "bytea", "ints", "texts", "text", "num", "f8", "int4"]
        types = self.types(3, kinds)
        query = node("query:" + ",".join(types), self.select(types, self.depth(), None))
        return self.query_case("values_", query, types)

    def constants(self):
        kinds = TYPES + ["interval", "bytea", "ints", "texts", "num", "f8", "int4", "int2", "int8"]
        type_ = self.pick(kinds)
        root = node("query:" + type_, "SELECT ", self.expr(type_, self.depth(), None))
        return Case("constants", [root], root)

    def subqueries(self):
        types = self.types(2)
        item, scope = self.from_(1, None)
        depth = self.depth()
        truth = self.queried(depth - 1, scope, self.pick(TYPES))
        columns = [self.expr(t, 1, scope) for t in types]
        if self.chance(0.3):
            columns.append(self.queried(depth - 1, scope, self.pick(TYPES)))
            types.append("bool")
        where = optional(" WHERE ", truth) if self.chance(0.8) else ""
        query = node("query:" + ",".join(types), "SELECT ", Items(columns, least=len(types)), " FROM ", item, where)
        return self.query_case("subqueries", query, types)

    def set_operations(self):
        types = self.types(2)
        return self.query_case("set_operations", self.set_operation(types, self.depth(), None), types)

    def windows(self):
        query, types = self.windowed(self.depth())
        return self.query_case("windows", query, types)

    def groups(self):
        types = self.types(3, PLAIN + ["f8", "int8", "num"])
        return self.query_case("groups", self.grouped(types, self.depth(), None), types)

    def joins(self):
        item, scope = self.join(self.depth() - 1, None)
        if self.chance(0.4):
            root = node("top", "SELECT ", self.pick(["*", "*", f"{scope.sources[0].name}.*", "count(*)", "*, *",
                                                             f"{scope.sources[0].name}.*, {scope.sources[-1].name}.*",
                                                             f"*, {scope.sources[0].name}.*"]), " FROM ", item,
                        self.where(1, scope))
            return Case("joins", [root], root)
        types = self.types(3)
        columns = Items([self.expr(t, 1, scope) for t in types], least=len(types))
        return self.query_case("joins", node("select", "SELECT ", columns, " FROM ", item, self.where(2, scope)), types)

    def tables_of_queries(self):
        """WITH: the query may use the table several times."""
        saved, names = dict(self.named), []
        for _ in range(self.rng.randint(1, 2)):
            columns = {}
            for type_ in self.types(3):
                columns.setdefault(NAMES[type_], type_)
            name = self.pick(["t1", "cte", "other"]) if self.chance(0.2) else self.fresh("cte")
            if name in [n for n, _ in names]:
                continue
            body = self.query_of(list(columns.values()), self.depth(), None)
            if self.chance(0.2):
                inner = f"{name}({', '.join(columns)})"
                body = node("query", f"WITH {inner} AS (", body, f") SELECT * FROM {name}")
            materialized = self.pick(["", "", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            names.append((name, node("cte", f"{name}({', '.join(columns)}) AS {materialized}(", body, ")")))
            self.named[name] = columns
        if self.chance(0.25):
            name = self.fresh("r")
            union = self.pick(["UNION", "UNION ALL"])
            names.append((name, node("cte", f"{name}(k) AS (SELECT 1 {union} SELECT k + 1 FROM {name} WHERE k < 5)")))
            self.named[name] = {"k": "int4"}
        mine = {n for n, _ in names}
        everything, self.named = self.named, {n: c for n, c in self.named.items() if n in mine or self.chance(0.3)}
        types = self.types(2)
        query = self.query_of(types, self.depth(), None)
        self.named = saved
        del everything
        root = node("query:" + ",".join(types), "WITH RECURSIVE ", Items([n for _, n in names]), " ", query)
        return self.query_case("tables_of_queries", root, types)

    def changes(self):
        """UPDATE, DELETE and INSERT ... SELECT in a block that is rolled back; the table is read in between."""
        table = self.pick(self.tables)
        alias = self.pick(["", "", " AS x"])
        scope = Scope([Source("x" if alias else table.name, table.columns)])
        where = optional(" WHERE ", self.queried(self.depth(), scope, self.pick(TYPES))
                         if self.chance(0.6) else self.expr("bool", self.depth(), scope))
        choice = self.rng.randrange(5)
        if choice < 2:
            column = self.pick([c for c in table.columns if c != "id"])
            value = self.expr(table.columns[column], self.depth(), scope)
            root = node("dml", f"UPDATE {table.name}{alias} SET {column} = ", value, where)
        elif choice < 4:
            root = node("dml", f"DELETE FROM {table.name}{alias}", where)
        else:
            columns = [c for c in table.columns if c != "id"]
            chosen = self.rng.sample(columns, min(len(columns), 2))
            item, inner = self.from_(1, None, keyed=True)
            values = [node("int4", f"{inner.sources[0].name}.id + 100")]
            values += [self.expr(table.columns[c], 2, inner) for c in chosen]
            root = node("dml", f"INSERT INTO {table.name} (id, {', '.join(chosen)}) SELECT ",
                        Items(values, least=len(values)), " FROM ", item, self.where(2, inner))
        return Case("changes", ["BEGIN", root, f"SELECT * FROM {table.name}", "ROLLBACK"], root)


FAMILIES = ["values_", "values_", "constants", "constants", "subqueries", "subqueries", "set_operations", "windows", "groups",
            "joins", "tables_of_queries", "changes", "operators"]
