"""Differences that are known: what README's list of differences says, with the reason."""
import re

# A kind of difference, what it says of itself, and the statement, each as an expression, and the reason.
KNOWN = [
    ("accepted", r"42804 could not determine polymorphic type", r"", "an untyped text is taken for a text"),
    ("accepted", r"42803 aggregate functions are not allowed", r"", "an aggregate of outer columns belongs to its own query"),
]


def reason(kind, what, statement, leave_out):
    """Why a difference is no finding, or None."""
    if not leave_out:
        return None
    for kind_, what_, statement_, why in KNOWN:
        if re.fullmatch(kind_, kind) and re.search(what_, what) and re.search(statement_, statement, re.S):
            return why
    return None
