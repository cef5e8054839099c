"""Whether two answers are the same: rows as multisets or in their order, types and names of columns, codes of errors."""
import collections
import decimal
import math
import re

NUMBER = re.compile(r"-?\d+(\.\d+)?")
NUMERIC, FLOATS, INTEGERS, BLANK_PADDED = 1700, {700, 701}, {20, 21, 23}, 1042
TYPE_NAMES = {16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "int", 25: "text", 701: "float8", 1007: "int[]",
              1009: "text[]", 1042: "char", 1043: "varchar", 1082: "date", 1114: "timestamp", 1184: "timestamptz", 1186: "interval",
              1700: "numeric"}


def difference(ours, theirs, ordered):
    """What differs between lstore's answer and PostgreSQL's: a kind and a sentence, or None."""
    if ours.failed or theirs.failed:
        return failures(ours, theirs)
    if len(ours.types) != len(theirs.types):
        return "columns", f"{len(ours.types)} columns, PostgreSQL {len(theirs.types)}"
    if not same_rows(ours, theirs, ordered):
        return "rows", "other rows"
    if ours.tag != theirs.tag:
        return "tag", f"{ours.tag}, PostgreSQL {theirs.tag}"
    if ours.types != theirs.types:
        return "types", "; ".join(sorted({f"{TYPE_NAMES.get(a, a)}, PostgreSQL {TYPE_NAMES.get(b, b)}"
                                          for a, b in zip(ours.types, theirs.types) if a != b}))
    if ours.names != theirs.names:
        return "names", "; ".join(sorted({f"{a}, PostgreSQL {b}" for a, b in zip(ours.names, theirs.names) if a != b}))
    return None


def failures(ours, theirs):
    if ours.failed and theirs.failed:
        if ours.code[:2] == theirs.code[:2]:
            return None
        return "code", f"{ours.code} {ours.message}; PostgreSQL {theirs.code} {theirs.message}"
    if theirs.failed:
        return "accepted", f"PostgreSQL fails with {theirs.code} {theirs.message}"
    if ours.code.startswith("XX"):
        return "internal", f"{ours.code} {ours.message}"
    if ours.code.startswith("0A"):
        return "unsupported", f"{ours.code} {ours.message}"
    if ours.code in ("57014", "08006"):
        return "limit", f"{ours.code} {ours.message}"
    return "refused", f"{ours.code} {ours.message}"


def same_rows(ours, theirs, ordered):
    left = [canonical(row, ours.types) for row in ours.rows]
    right = [canonical(row, theirs.types) for row in theirs.rows]
    if left == right:
        return True
    if len(left) != len(right):
        return False
    if ordered:
        return all(map(alike, left, right))
    # What is the same goes first; the few rows that are left may differ in the last digits of numbers.
    counts = collections.Counter(right)
    rest = [row for row in left if not taken(counts, row)]
    others = list(counts.elements())
    for row in rest:
        same = next((other for other in others if alike(row, other)), None)
        if same is None:
            return False
        others.remove(same)
    return True


def taken(counts, row):
    if counts[row] == 0:
        return False
    counts[row] -= 1
    return True


def alike(a, b):
    return len(a) == len(b) and all(map(close, a, b))


def canonical(row, types):
    return tuple(value(text, type_) for text, type_ in zip(row, types))


def value(text, type_):
    if text is None:
        return None
    if type_ == BLANK_PADDED:
        # Blanks at the end mean nothing there; how many are shown depends on a length that CASE and its kin lose.
        return text.rstrip(" ")
    if type_ in FLOATS:
        return float(text)
    if type_ == NUMERIC or type_ in INTEGERS:
        number = decimal.Decimal(text)
        return number if number.is_finite() else float(text)
    return text


def is_shorter(a, b):
    """Whether a numeric is the other with the sixteen decimals of a function of numerics, beside others that have more."""
    wide = decimal.Context(prec=120)
    is_short = a.normalize(wide).as_tuple().exponent >= -16
    return a != b and is_short and a == b.quantize(decimal.Decimal(1).scaleb(-16), context=wide)


def close_items(a, b):
    return a == b or bool(NUMBER.fullmatch(a) and NUMBER.fullmatch(b)) and close(decimal.Decimal(a), decimal.Decimal(b))


def close(a, b):
    if a == b or a is None or b is None:
        return a == b
    if isinstance(a, str) and isinstance(b, str) and a[:1] == b[:1] == "{":
        # Numerics in an array that were cast to text.
        items = a.strip("{}").split(","), b.strip("{}").split(",")
        return len(items[0]) == len(items[1]) and all(map(close_items, *items))
    if isinstance(a, (float, decimal.Decimal)) and isinstance(b, (float, decimal.Decimal)):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-13)
        if isinstance(a, decimal.Decimal) and isinstance(b, decimal.Decimal):
            # Where both have as many decimals no digit may differ but the last of sixteen or more, which are of quotients,
            # roots and logarithms: quotients have at least ten here, sixteen there.
            if a.as_tuple().exponent == b.as_tuple().exponent:
                is_rounded = a.as_tuple().exponent <= -16 and math.isclose(a, b, rel_tol=1e-15, abs_tol=2e-16)
                return is_rounded or is_shorter(a, b) or is_shorter(b, a)
            return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        return math.isclose(float(a), float(b), rel_tol=1e-12)
    if isinstance(a, str) and isinstance(b, str) and NUMBER.fullmatch(a) and NUMBER.fullmatch(b):
        # A numeric that was cast to text: how many decimals it has differs as that of the numeric does.
        return close(decimal.Decimal(a), decimal.Decimal(b))
    return False
