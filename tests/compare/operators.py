"""Expressions without parentheses: how strongly operators bind decides what they are."""
from queries import Case
from tree import node

NUMBERS = [" + ", " - ", " * ", " / ", " % ", " & ", " | ", " # "]
COMPARISONS = [" = ", " <> ", " < ", " > ", " <= ", " >= "]


class Operators:
    """Makes such expressions over one table; the dice come from the subclass."""

    def operators(self):
        table = self.pick(self.tables)
        self.flat_columns = {t: [c for c, of in table.columns.items() if of == t] for t in ("int4", "text", "bool")}
        type_ = self.pick(["int4", "text", "bool", "bool"])
        root = node("query:" + type_, "SELECT id, ", self.flat(type_, self.rng.randint(2, 4)), f" FROM {table.name}")
        return Case("operators", [root], root)

    def flat(self, type_, depth):
        if depth <= 0 or self.chance(0.25):
            constants = {"int4": ["0", "1", "2", "3", "7"], "text": ["'a'", "'%b'", "''"], "bool": ["true", "false", "NULL"]}
            return node(type_, self.pick(self.flat_columns[type_] * 2 + constants[type_]))
        return node(type_, *getattr(self, "flat_" + type_)(depth - 1))

    def flat_int4(self, depth):
        def e(t="int4"):
            return self.flat(t, depth)
        return self.pick([
            lambda: [e(), self.pick(NUMBERS), e()],
            lambda: [e(), self.pick(NUMBERS), e()],
            lambda: [self.pick(["- ", "~ ", "+ ", "@ "]), e()],
            lambda: [e(), "::int"],
            lambda: ["CASE WHEN ", e("bool"), " THEN ", e(), " ELSE ", e(), " END"],
            lambda: ["length(", e("text"), ")"],
        ])()

    def flat_text(self, depth):
        def e(t="text"):
            return self.flat(t, depth)
        return self.pick([
            lambda: [e(), " || ", e()],
            lambda: [e(), " || ", e("int4")],
            lambda: [e("int4"), "::text"],
        ])()

    def flat_bool(self, depth):
        def e(t="bool"):
            return self.flat(t, depth)
        negated = self.pick(["", "NOT "])
        return self.pick([
            lambda: [e(), self.pick([" AND ", " OR "]), e()],
            lambda: ["NOT ", e()],
            lambda: [e(), f" IS {negated}", self.pick(["NULL", "TRUE", "FALSE", "UNKNOWN"])],
            lambda: [e(), self.pick([" ISNULL", " NOTNULL"])],
            lambda: [e(), f" IS {negated}DISTINCT FROM ", e()],
            lambda: [e("int4"), f" IS {negated}DISTINCT FROM ", e("int4")],
            lambda: [e("int4"), self.pick(COMPARISONS), e("int4")],
            lambda: [e("text"), self.pick(COMPARISONS), e("text")],
            lambda: [e("int4"), f" {negated}BETWEEN ", self.pick(["", "SYMMETRIC "]), e("int4"), " AND ", e("int4")],
            lambda: [e("int4"), f" {negated}IN (", e("int4"), ", ", e("int4"), ")"],
            lambda: [e("text"), f" {negated}", self.pick(["LIKE ", "ILIKE ", "SIMILAR TO "]), e("text")],
            lambda: [e("text"), self.pick([" ~ ", " !~ ", " ~* ", " ~~ ", " ^@ "]), e("text")],
            lambda: [e("int4"), self.pick(COMPARISONS), "ANY (ARRAY[", e("int4"), ", ", e("int4"), "])"],
        ])()
