"""Random expressions of each type over the columns of a scope, as PostgreSQL understands them."""
import dataclasses

from tables import SPELLED, literal
from tree import Items, node

TYPES = ["int4", "int4", "int4", "int2", "int8", "num", "f8", "text", "text", "char", "varchar", "bool", "date", "ts"]
INTEGERS = ["int4", "int2", "int8"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
PATTERNS = ["'a%'", "'%b'", "'_'", "'%'", "'a_c'", "''"]
REGEXPS = ["'a.c'", "'^a'", "'b$'", "'[a-c]+'", "'(a)(b)?'", "'A'", "'x*'", "'\\d+'", "'a|b'", "'(.)\\1'", "'a(?=b)'"]
SIMILAR = ["'a%'", "'%(a|b)%'", "'[a-c]+'", "'_b'", "'a.c'", "'(ab|a) ?'"]
NUMBER_TEMPLATES = ["'999D99'", "'FM999.99'", "'S099'", "'9,999'", "'99MI'", "'0000'"]
TIME_TEMPLATES = ["'YYYY-MM-DD'", "'HH24:MI:SS.US'", "'FMDay, DDth Month'", "'Dy Mon D DDD Q'", "'IYYY-IW-ID'", "'HH12 am J'"]
REPLACEMENTS = ["'x'", "'$1'", "'\\1'", "'\\&\\&'", "'<\\1>'", "''", "'\\\\'"]
FIELDS = ["year", "month", "day", "dow", "doy", "quarter", "week", "isodow", "isoyear", "century", "decade", "millennium",
          "epoch", "julian"]
TIME_FIELDS = FIELDS + ["hour", "minute", "second", "milliseconds", "microseconds"]


@dataclasses.dataclass
class Source:
    """An item of FROM: its name and its columns."""

    name: str
    columns: dict


@dataclasses.dataclass
class Scope:
    """The names that an expression may use: those of its own query, and of the queries around it."""

    sources: list
    outer: "Scope" = None

    def visible(self):
        """Pairs of a reference and its type: own columns first, then what is not hidden of those around."""
        found, hidden, names = [], set(), set()
        scope, level = self, 0
        while scope is not None:
            here = [column for source in scope.sources for column in source.columns]
            for source in scope.sources:
                if source.name in hidden:
                    continue
                for column, type_ in source.columns.items():
                    found.append((level, f"{source.name}.{column}", type_))
                    if here.count(column) == 1 and column not in names:
                        found.append((level, column, type_))
            hidden.update(source.name for source in scope.sources)
            names.update(here)
            scope, level = scope.outer, level + 1
        return found


class Expressions:
    """Makes expressions; the queries inside of them come from the subclass."""

    def __init__(self, rng, without=()):
        self.rng, self.without = rng, without

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, things):
        return self.rng.choice(things)

    def column(self, type_, scope):
        """A column of a type, or nothing; own ones more often than those of the queries around."""
        fits = [(level, name) for level, name, t in scope.visible() if t == type_] if scope else []
        if not fits:
            return None
        own = [f for f in fits if f[0] == 0]
        level, name = self.pick(own if own and self.chance(0.7) else fits)
        return node(type_, name)

    def expr(self, type_, depth, scope):
        """An expression of a type, at most so deep."""
        if type_ in self.without:
            type_ = {"char": "varchar"}.get(type_, "text")
        if depth <= 0 or self.chance(0.15):
            return self.leaf(type_, scope)
        if self.chance(0.12):
            return self.general(type_, depth - 1, scope)
        made = getattr(self, "make_" + type_)(depth - 1, scope)
        return made if made is not None else self.leaf(type_, scope)

    def leaf(self, type_, scope):
        found = self.column(type_, scope) if self.chance(0.8) else None
        if found is None and type_ == "varchar" and "varchar(n)" in self.without:
            return literal("text", self.rng)
        if found is None and self.chance(0.05):
            return node(type_, f"NULL::{SPELLED.get(type_, 'text')}") if type_ in SPELLED else literal(type_, self.rng)
        return found or literal(type_, self.rng)

    def general(self, type_, depth, scope):
        """What there is for any type: CASE, coalesce, nullif, greatest, a scalar subquery."""
        def e(t=type_):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(6)
        if choice == 0:
            return node(type_, "CASE WHEN ", e("bool"), " THEN ", e(), *([" ELSE ", e()] if self.chance(0.7) else []), " END")
        if choice == 1:
            other = self.pick(["int4", "text"])
            return node(type_, "CASE ", e(other), " WHEN ", e(other), " THEN ", e(), " ELSE ", e(), " END")
        if choice == 2 and type_ not in ("ints", "texts"):
            return node(type_, "nullif(", e(), ", ", e(), ")")
        if choice == 3 and type_ not in ("ints", "texts", "interval"):
            return node(type_, self.pick(["greatest", "least"]), "(", e(), ", ", e(), ")")
        if choice == 4 and scope is not None:
            return node(type_, "(", self.scalar_query(type_, depth, scope), ")")
        return node(type_, "coalesce(", e(), ", ", e(), ")")

    # Numbers. Columns hold values near the ends of their types, so sums and products overflow now and then.

    def integers(self, type_, depth, scope):
        def e(t=type_):
            return self.expr(t, depth, scope)

        lower = {"int2": "int2", "int4": self.pick(["int2", "int4"]), "int8": self.pick(INTEGERS)}[type_]
        choice = self.rng.randrange(10)
        if choice == 8:
            return node(type_, self.pick(["(~ ", "(@ "]), e(), ")")
        if choice == 9:
            return node(type_, "(", e(), self.pick([" << ", " >> "]), self.pick(["0", "1", "3", "33"]), ")")
        if choice < 3:
            return node(type_, "(", e(), self.pick([" + ", " - ", " * "]), e(lower), ")")
        if choice == 3:
            return node(type_, "(", e(), self.pick([" / ", " % "]), "nullif(", e(lower), ", 0))")
        if choice == 4:
            return node(type_, self.pick(["abs(", "- (", "+ ("]), e(), ")")
        if choice == 5:
            return node(type_, "CAST(", e(self.pick(["int4", "int2", "int8", "num", "f8"])), f" AS {SPELLED[type_]})")
        if choice == 6:
            return node(type_, "(", e(), self.pick([" & ", " | ", " # "]), e(), ")")
        return None

    def make_int2(self, depth, scope):
        return self.integers("int2", depth, scope)

    def make_int8(self, depth, scope):
        return self.integers("int8", depth, scope)

    def make_int4(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(12)
        if choice == 0:
            return node("int4", self.pick(["length", "char_length", "octet_length", "ascii"]), "(", e("text"), ")")
        if choice == 1:
            return node("int4", "position(", e("text"), " IN ", e("text"), ")")
        if choice == 2:
            return node("int4", "(", e("date"), " - ", e("date"), ")")
        if choice == 3:
            return node("int4", "array_length(", e(self.pick(["ints", "texts"])), ", 1)")
        if choice == 4:
            return node("int4", "(", e("ints"), ")[", self.pick(["1", "2", "3", "0", "-1"]), "]")
        if choice == 5:
            return node("int4", "CAST(", e("bool"), " AS int)")
        return self.integers("int4", depth, scope)

    def make_num(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(15)
        if choice == 12:
            return node("num", self.pick(["ln", "sqrt", "log"]), "(nullif(abs(", e("num"), "), 0))")
        if choice == 13:
            return node("num", "power(", e("num"), ", ", self.pick(["2", "0.5", "-1", "3.0"]), ")")
        if choice == 14:
            return node("num", "trim_scale(", e("num"), ")")
        if choice < 3:
            return node("num", "(", e("num"), self.pick([" + ", " - ", " * "]), e(self.pick(["num", "int4"])), ")")
        if choice == 3:
            return node("num", "(", e("num"), " / nullif(", e(self.pick(["num", "int4"])), ", 0))")
        if choice == 4:
            return node("num", self.pick(["abs", "ceil", "floor", "round", "trunc", "sign"]), "(", e("num"), ")")
        if choice == 5:
            return node("num", self.pick(["round", "trunc"]), "(", e("num"), ", ", self.pick(["0", "1", "2", "-1"]), ")")
        if choice == 6:
            return node("num", "extract(", self.pick(TIME_FIELDS), " FROM ", e("ts"), ")")
        if choice == 7:
            return node("num", "extract(", self.pick(FIELDS), " FROM ", e("date"), ")")
        if choice == 8:
            return node("num", "extract(", self.pick(["day", "month", "year", "hour", "epoch"]), " FROM ", e("interval"), ")")
        if choice == 9:
            return node("num", "CAST(", e(self.pick(["int4", "f8", "num"])), " AS numeric(10,3))")
        if choice == 10:
            return node("num", self.pick(["mod(", "div("]), e("num"), ", nullif(", e("num"), ", 0))")
        return node("num", e("num"), self.pick([" % ", " % "]), "nullif(", e("num"), ", 0)") if self.chance(0.3) else None

    def make_f8(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(9)
        if choice < 3:
            return node("f8", "(", e("f8"), self.pick([" + ", " - ", " * ", " / "]), e(self.pick(["f8", "int4"])), ")")
        if choice == 3:
            return node("f8", self.pick(["abs", "ceil", "floor", "round", "trunc", "sign", "sqrt", "cbrt", "exp", "ln",
                                         "log", "sin", "cos", "atan", "degrees", "radians"]), "(", e("f8"), ")")
        if choice == 4:
            return node("f8", self.pick(["power", "atan2"]), "(", e("f8"), ", ", e("f8"), ")")
        if choice == 5:
            return node("f8", "CAST(", e(self.pick(["int4", "num", "int8"])), " AS float8)")
        if choice == 6:
            return node("f8", "(- ", e("f8"), ")")
        return None

    # Texts and bytes.

    def make_text(self, depth, scope):
        def e(t="text"):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(25)
        if choice == 24 and scope is not None:
            return node("text", "(SELECT string_agg(s, ',') FROM (", self.array_query("text", depth, scope), ") AS o(s))")
        if choice == 20:
            return node("text", "format(", self.pick(["'%s-%s'", "'%2$s %1$L'", "'%5s|%-3s'", "'%I.%I'"]), ", ", e(), ", ", e(), ")")
        if choice == 21:
            return node("text", self.pick(["quote_ident", "quote_nullable"]), "(", e(), ")")
        if choice == 22:
            return node("text", "to_char(", e(self.pick(["num", "int4"])), ", ", self.pick(NUMBER_TEMPLATES), ")")
        if choice == 23:
            return node("text", "to_char(", e(self.pick(["ts", "date"])), ", ", self.pick(TIME_TEMPLATES), ")")
        if choice == 0:
            return node("text", "(", e(), " || ", e(self.pick(["text", "varchar", "char"])), ")")
        if choice == 1:
            return node("text", self.pick(["upper", "lower", "trim", "ltrim", "rtrim", "initcap", "reverse", "md5",
                                           "btrim", "quote_literal"]), "(", e(), ")")
        if choice == 2:
            return node("text", "substring(", e(), " FROM ", e("int4"), ")")
        if choice == 3:
            return node("text", "substr(", e(), ", ", self.pick(["1", "2", "0", "-1"]), ", ", self.pick(["0", "1", "2", "5"]), ")")
        if choice == 4:
            return node("text", self.pick(["left", "right"]), "(", e(), ", ", self.pick(["1", "2", "-1", "0"]), ")")
        if choice == 5:
            return node("text", "replace(", e(), ", ", e(), ", ", e(), ")")
        if choice == 6:
            flags = self.pick(["", "", ", 'g'", ", 'i'", ", 'gi'"])
            return node("text", "regexp_replace(", e(), ", ", self.pick(REGEXPS), ", ", self.pick(REPLACEMENTS), flags, ")")
        if choice == 7:
            return node("text", self.pick(["lpad", "rpad"]), "(", e(), ", ", self.pick(["3", "1", "0", "5"]), ", 'xy')")
        if choice == 8:
            return node("text", "CAST(", e(self.pick(["int4", "int8", "bool", "date", "ts", "char", "varchar", "num"])), " AS text)")
        if choice == 9:
            return node("text", "encode(", e("bytea"), ", ", self.pick(["'hex'", "'base64'", "'escape'"]), ")")
        if choice == 10:
            return node("text", "split_part(", e(), ", ", self.pick(["'a'", "'.'", "' '"]), ", ", self.pick(["1", "2", "-1"]), ")")
        if choice == 11:
            return node("text", "concat(", e(), ", ", e(self.pick(["int4", "text", "bool"])), ")")
        if choice == 12:
            return node("text", "concat_ws(", self.pick(["','", "'-'"]), ", ", e(), ", ", e(), ")")
        if choice == 13:
            return node("text", "translate(", e(), ", 'ab', ", self.pick(["'xy'", "'x'", "''"]), ")")
        if choice == 14:
            return node("text", "repeat(", e(), ", ", self.pick(["0", "1", "2", "-1"]), ")")
        if choice == 15:
            return node("text", "array_to_string(", e(self.pick(["ints", "texts"])), ", ','", self.pick(["", ", '*'"]), ")")
        if choice == 16:
            return node("text", "substring(", e(), " FROM ", self.pick(REGEXPS), ")")
        if choice == 17:
            return node("text", "(", e("texts"), ")[", self.pick(["1", "2"]), "]")
        if choice == 18:
            return node("text", "overlay(", e(), " PLACING 'zz' FROM ", self.pick(["1", "2"]), ")")
        return None

    def make_char(self, depth, scope):
        return node("char", "CAST(", self.expr(self.pick(["text", "varchar", "char"]), depth, scope), " AS char(3))")

    def make_varchar(self, depth, scope):
        if "varchar(n)" in self.without:
            return None
        return node("varchar", "CAST(", self.expr(self.pick(["text", "char", "int4"]), depth, scope), " AS varchar(5))")

    def make_bytea(self, depth, scope):
        choice = self.rng.randrange(4)
        if choice == 0:
            return node("bytea", "decode(", self.pick(["'6162', 'hex'", "'YWI=', 'base64'", "'a\\\\b', 'escape'", "'zz', 'hex'"]), ")")
        if choice == 1:
            return node("bytea", "CAST(", self.expr("varchar", 0, scope), " AS bytea)")
        return None

    # Dates and times.

    def make_date(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(4)
        if choice == 0:
            return node("date", "(", e("date"), self.pick([" + ", " - "]), self.pick(["1", "30", "366"]), ")")
        if choice == 1:
            return node("date", "CAST(", e("ts"), " AS date)")
        if choice == 2:
            return node("date", "make_date(", self.pick(["2020", "1999"]), ", ", self.pick(["1", "2", "12"]), ", ",
                        self.pick(["1", "28", "31"]), ")")
        return None

    def make_ts(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(5)
        if choice == 0:
            return node("ts", "(", e(self.pick(["ts", "date"])), self.pick([" + ", " - "]), e("interval"), ")")
        if choice == 1:
            return node("ts", "date_trunc('", self.pick(["year", "month", "day", "hour", "week", "quarter", "minute"]), "', ",
                        e("ts"), ")")
        if choice == 2:
            return node("ts", "CAST(", e("date"), " AS timestamp)")
        return None

    def make_interval(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(7)
        if choice == 5:
            return node("interval", "age(", e("ts"), ", ", e("ts"), ")")
        if choice == 6:
            return node("interval", self.pick(["justify_days(", "justify_hours(", "justify_interval("]), e("interval"), ")")
        if choice == 0:
            return node("interval", "(", e("interval"), self.pick([" + ", " - "]), e("interval"), ")")
        if choice == 1:
            return node("interval", "(", e("ts"), " - ", e("ts"), ")")
        if choice == 2:
            return node("interval", "(", e("interval"), " * ", self.pick(["2", "0.5", "-1"]), ")")
        return None

    # Arrays.

    def make_ints(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(6)
        if choice == 5 and scope is not None:
            return node("ints", "(SELECT array_agg(k) FROM (", self.array_query("int4", depth, scope), ") AS o(k))")
        if choice == 0:
            return node("ints", "ARRAY[", Items([e("int4") for _ in range(self.rng.randint(1, 3))]), "]")
        if choice == 1:
            return node("ints", "array_append(", e("ints"), ", ", e("int4"), ")")
        if choice == 2:
            return node("ints", "(", e("ints"), " || ", e("ints"), ")")
        if choice == 3 and scope is not None:
            return node("ints", "ARRAY(", self.array_query("int4", depth, scope), ")")
        return None

    def make_texts(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        choice = self.rng.randrange(5)
        if choice == 0:
            return node("texts", "ARRAY[", Items([e("text") for _ in range(self.rng.randint(1, 3))]), "]")
        if choice == 1:
            return node("texts", "string_to_array(", e("text"), ", ", self.pick(["'a'", "','", "''"]), ")")
        if choice == 2 and scope is not None:
            return node("texts", "ARRAY(", self.array_query("text", depth, scope), ")")
        return None

    # Truths.

    def make_bool(self, depth, scope):
        def e(t):
            return self.expr(t, depth, scope)

        type_ = self.pick(TYPES)
        makers = [self.compared] * 4 + [self.combined] * 4 + [self.listed] * 3 + [self.matched] * 2 + [self.row_wise] * 2
        makers += [self.array_truth] * 2
        if scope is not None:
            makers += [self.queried] * 5
        choice = self.pick(makers + ["null", "between", "distinct", "is"])
        if choice == "null":
            return node("bool", "(", e(type_), self.pick([" IS NULL)", " IS NOT NULL)"]))
        if choice == "between":
            return node("bool", "(", e(type_), self.pick(["", " NOT"]), " BETWEEN ", self.pick(["", "", "SYMMETRIC "]),
                        e(type_), " AND ", e(type_), ")")
        if choice == "distinct":
            return node("bool", "(", e(type_), " IS ", self.pick(["", "NOT "]), "DISTINCT FROM ", e(type_), ")")
        if choice == "is":
            return node("bool", "((", e("bool"), ") IS ", self.pick(["", "NOT "]), self.pick(["TRUE", "FALSE", "UNKNOWN"]), ")")
        return choice(depth, scope, type_)

    def compared(self, depth, scope, type_):
        other = type_
        if type_ in INTEGERS + ["num", "f8"] and self.chance(0.3):
            other = self.pick(INTEGERS + ["num", "f8"])
        if type_ in ("text", "char", "varchar") and self.chance(0.3):
            other = self.pick(["text", "char", "varchar"])
        return node("bool", "(", self.expr(type_, depth, scope), f" {self.pick(COMPARISONS)} ", self.expr(other, depth, scope), ")")

    def combined(self, depth, scope, _):
        if self.chance(0.25):
            return node("bool", "(NOT ", self.expr("bool", depth, scope), ")")
        items = [self.expr("bool", depth, scope) for _ in range(self.rng.randint(2, 3))]
        return node("bool", "(", Items(items, self.pick([" AND ", " OR "])), ")")

    def listed(self, depth, scope, type_):
        items = Items([self.expr(type_, depth, scope) for _ in range(self.rng.randint(1, 3))])
        if self.chance(0.3):
            return node("bool", "(", self.expr(type_, depth, scope), f" {self.pick(COMPARISONS)} ",
                        self.pick(["ANY", "ALL", "SOME"]), " (ARRAY[", items, "]))")
        return node("bool", "(", self.expr(type_, depth, scope), self.pick(["", " NOT"]), " IN (", items, "))")

    def matched(self, depth, scope, _):
        type_ = self.pick(["text", "text", "varchar", "char"])
        if self.chance(0.2):
            patterns = node("texts", "ARRAY[", Items([node("text", self.pick(PATTERNS)) for _ in range(self.rng.randint(1, 2))]), "]")
            return node("bool", "(", self.expr("text", depth, scope), self.pick([" LIKE ", " NOT LIKE ", " ILIKE "]),
                        self.pick(["ANY", "ALL"]), " (", patterns, "))")
        if self.chance(0.5):
            return node("bool", "(", self.expr(type_, depth, scope), self.pick([" ~ ", " ~* ", " !~ ", " !~* "]),
                        self.pick(REGEXPS), ")")
        if self.chance(0.3):
            return node("bool", "(", self.expr(type_, depth, scope), self.pick([" SIMILAR TO ", " NOT SIMILAR TO "]),
                        self.pick(SIMILAR), ")")
        return node("bool", "(", self.expr(type_, depth, scope), self.pick([" LIKE ", " NOT LIKE ", " ILIKE "]),
                    self.pick(PATTERNS), ")")

    def row_wise(self, depth, scope, type_):
        other = self.pick(TYPES)

        def row():
            return ["(", self.expr(type_, depth, scope), ", ", self.expr(other, depth, scope), ")"]

        if self.chance(0.3):
            return node("bool", "(ROW", *row(), self.pick([" IS NULL", " IS NOT NULL"]), ")")
        if self.chance(0.3):
            return node("bool", "(", *row(), self.pick([" IN (", " NOT IN ("]), *row(), ", ", *row(), "))")
        return node("bool", "(", *row(), f" {self.pick(COMPARISONS)} ", *row(), ")")

    def array_truth(self, depth, scope, _):
        array, element = self.pick([("ints", "int4"), ("texts", "text")])
        if self.chance(0.4):
            return node("bool", "(", self.expr(element, depth, scope), f" {self.pick(COMPARISONS)} ", self.pick(["ANY", "ALL"]),
                        "(", self.expr(array, depth, scope), "))")
        return node("bool", "(", self.expr(array, depth, scope), self.pick([" = ", " @> ", " <@ ", " && ", " < ", " <> "]),
                    self.expr(array, depth, scope), ")")

    def queried(self, depth, scope, type_):
        choice = self.rng.randrange(6)
        negation = self.pick(["", "NOT "])
        if choice < 2:
            return node("bool", f"({negation}EXISTS (", self.query_of([self.pick(TYPES)], depth, scope), "))")
        if choice < 4:
            return node("bool", "(", self.expr(type_, depth, scope), f" {negation}IN (", self.query_of([type_], depth, scope), "))")
        if choice == 4:
            other = self.pick(TYPES)
            if self.chance(0.3):
                how = f") {self.pick(COMPARISONS)} {self.pick(['ANY', 'ALL'])} ("
                return node("bool", "((", self.expr(type_, depth, scope), ", ", self.expr(other, depth, scope), how,
                            self.query_of([type_, other], depth, scope), "))")
            return node("bool", "((", self.expr(type_, depth, scope), ", ", self.expr(other, depth, scope), f") {negation}IN (",
                        self.query_of([type_, other], depth, scope), "))")
        return node("bool", "(", self.expr(type_, depth, scope), f" {self.pick(COMPARISONS)} ", self.pick(["ANY", "ALL", "SOME"]),
                    " (", self.query_of([type_], depth, scope), "))")
