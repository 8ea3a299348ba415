"""The differences between our symbols and others' that were looked at, each with its reason."""

from benchmarks.symbols.compare import LINES, MISSING, Difference, Reason


def _is_type_member(one: Difference) -> bool:
    return one.what == MISSING and one.theirs.place == "type literal"


def _is_local_alias(one: Difference) -> bool:
    return one.what == MISSING and one.theirs.kind == "type_alias" and one.theirs.place == "function"


def _ends_with_comments(one: Difference) -> bool:
    tail = [line.strip() for line in one.tail]
    return one.what == LINES and any(tail) and all(not line or line.startswith("#") for line in tail)


def _is_ctags_alone(one: Difference) -> bool:
    return not one.is_confirmed


COMMENTS = Reason(
    title="comments at the end",
    applies=_ends_with_comments,
    is_subtracted=False,
    why="Comments with the body's indentation behind its last statement belong to the symbol with us; for the peer it "
    "ends with the statement.",
)
SYNTAX: tuple[Reason, ...] = (
    Reason(
        title="member of an anonymous type",
        applies=_is_type_member,
        is_subtracted=True,
        why="The methods of interfaces and classes are symbols; those of a type literal are part of the signature of "
        "what the type is written for.",
    ),
    Reason(
        title="type alias within a function",
        applies=_is_local_alias,
        is_subtracted=True,
        why="As variables, aliases are symbols at the level of modules, namespaces and classes.",
    ),
    COMMENTS,
)
CTAGS: tuple[Reason, ...] = (
    Reason(
        title="named by ctags alone",
        applies=_is_ctags_alone,
        is_subtracted=True,
        why="The first peer names nothing of this name on this line: ctags tags each name of an `import type { … }` as "
        "an alias, objects as classes, `new (…)` signatures as methods, and Python's lambdas bound to a name as "
        "functions (they are variables with us, and for `ast`).",
    ),
    COMMENTS,
)
