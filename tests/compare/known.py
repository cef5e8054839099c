"""Differences that are known: what README's list of differences says, with the reason; and constructs left out of comparison."""
import re

# A kind of difference, what it says of itself, and the statement, each as an expression, and the reason.
KNOWN = [
]


def reason(kind, what, statement, leave_out):
    """Why a difference is no finding, or None."""
    if not leave_out:
        return None
    for kind_, what_, statement_, why in KNOWN:
        if re.fullmatch(kind_, kind) and re.search(what_, what) and re.search(statement_, statement, re.S):
            return why
    return None
