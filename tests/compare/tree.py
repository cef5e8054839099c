"""Statements as trees: what is generated can be cut down again while it still shows a difference.

A `Node` is text and nodes in turn. Its `type` tells what may stand in its place: a node of the same type from below it, the
constants of the type, or, where it is optional, nothing. A list drops its items one by one. What no longer makes
sense after a cut is refused by PostgreSQL, and the cut is undone.
"""
import dataclasses

CONSTANTS = {
    "int2": ["1::smallint"], "int4": ["1", "NULL::int"], "int8": ["1::bigint"], "num": ["1.5", "1::numeric"],
    "f8": ["0.5::float8"], "text": ["'a'::text", "NULL::text"], "char": ["'a'::char(3)"], "varchar": ["'a'::varchar(5)"],
    "bool": ["true", "false"], "date": ["date '2020-01-31'"], "ts": ["timestamp '2020-01-31 10:00:00'"],
    "interval": ["interval '1 day'"], "bytea": ["'\\x01'::bytea"], "ints": ["ARRAY[1, 2]"], "texts": ["ARRAY['a']"],
}


@dataclasses.dataclass(eq=False)
class Node:
    """Text and nodes; `empty` says that it may be left out."""

    type: str
    parts: list
    empty: bool = False

    def __str__(self):
        return "".join(str(part) for part in self.parts)

    def children(self):
        return [part for part in self.parts if isinstance(part, Node)]


class Items(Node):
    """Nodes with a separator between them, of which at least `least` stay."""

    def __init__(self, items, separator=", ", least=1):
        super().__init__("items", list(items))
        self.separator, self.least = separator, least

    def __str__(self):
        return self.separator.join(str(part) for part in self.parts)


def node(type_, *parts):
    return Node(type_, list(parts))


def optional(*parts):
    return Node("optional", list(parts), empty=True)


def below(root, type_, depth=4):
    """The nodes of a type under this one, nearest first."""
    level, found = root.children(), []
    for _ in range(depth):
        found.extend(n for n in level if n.type == type_)
        level = [child for n in level for child in n.children()]
    return found


def cuts(root):
    """Each way to make the tree smaller by one step, as a pair of functions: do it, undo it."""
    pending = [root]
    while pending:
        at = pending.pop(0)
        if at.empty and at.parts:
            yield swap(at, [])
        if isinstance(at, Items):
            for index in range(len(at.parts)):
                if len(at.parts) > at.least:
                    yield swap(at, at.parts[:index] + at.parts[index + 1 :])
        else:
            for other in below(at, at.type):
                yield swap(at, [other])
            for constant in CONSTANTS.get(at.type, ()):
                if at.parts != [constant] and (at.children() or constant[0] not in "tfN1'"):
                    yield swap(at, [constant])
        pending.extend(at.children())


def swap(at, parts):
    before = at.parts

    def do():
        at.parts = parts

    def undo():
        at.parts = before

    return do, undo


def minimise(root, still_differs, budget=300):
    """Cuts down the tree in place while `still_differs()` holds, in at most so many tries."""
    again = True
    while again and budget > 0:
        again = False
        for do, undo in cuts(root):
            do()
            budget -= 1
            if still_differs():
                again = True
                break
            undo()
            if budget <= 0:
                break
