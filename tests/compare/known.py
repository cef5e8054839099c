"""Differences that are known: what README's list of differences says, with the reason."""
import re

# A kind of difference, what it says of itself, and the statement, each as an expression, and the reason.
KNOWN = [
    ("accepted|code", r"42804 could not determine polymorphic type", r"", "an untyped text is taken for a text"),
    ("accepted|code", r"PostgreSQL (fails with )?42601 syntax error", r"",
     "comparisons in a row are read from the left, where PostgreSQL wants parentheses"),
    ("rows", r"", r"\b(a?sin|a?cos|a?tan|cot)d?\(.*\b(sum|avg|var|stddev|corr|covar|regr)",
     "the last digits of a sum of floats depend on the order of its rows, and an angle of many turns magnifies them"),
    ("rows|tag", r"", r"atan2d?\(", "a float that is computed is never negative zero, whose angle is another"),
]

# Errors of values: out of range, a division by zero, logarithms and powers, a NULL that may not be, bad arguments.
OF_VALUES = r"(?:PostgreSQL fails with )?(22003|22004|22008|22012|22023|2201[BEFG]) "
# PostgreSQL's manual (4.2.14) leaves open in what order the parts of an expression are worked out, and whether those are that
# decide nothing. So what fails on one side only is no finding as long as the smallest statement that shows it has one of these.
DECIDES = (r"\b(CASE|AND|OR|IN|ANY|ALL|SOME|EXISTS|JOIN|LATERAL|LIMIT|OFFSET|FETCH|UNION|INTERSECT|EXCEPT|OVER|HAVING|FILTER|ROW|nullif)\b"
           r"|, t\d|WHERE false|\((SELECT|VALUES)\b|\) [<>=]+ \(|NULL::")
LEFT_OPEN = "an operand that decides no row is worked out on one side only"


def may_be_left_open(kind, what):
    """Whether one side only met an error of values; the smallest statement tells the rest."""
    return kind in ("accepted", "refused") and re.match(OF_VALUES, what)


def left_open(kind, what, statement):
    """Why such a difference is no finding, or None, for a statement that was cut down as far as it goes."""
    return LEFT_OPEN if may_be_left_open(kind, what) and re.search(DECIDES, statement) else None


def reason(kind, what, statement):
    """Why a difference is no finding, or None."""
    for kind_, what_, statement_, why in KNOWN:
        if re.fullmatch(kind_, kind) and re.search(what_, what) and re.search(statement_, statement, re.S):
            return why
    return None
