"""Edits that a model proposes, the result of each, and the judgment of the tests."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

EditKind = Literal["edit", "symbol", "insert", "create", "delete"]
CONTENTS = ("search", "replacement")
BLOCKS = ("edit", "insert", "create", "delete")
"""Tags of the format in which a model writes edits; each block but a search and replacement may hold text itself."""
InsertPlace = Literal["", "after", "before", "in"]


class EditCode(StrEnum):
    """The result of one edit; all but the first two are refusals."""

    APPLIED = "APPLIED"
    ALREADY_APPLIED = "ALREADY_APPLIED"
    NO_MATCH = "NO_MATCH"
    AMBIGUOUS = "AMBIGUOUS"
    WRONG_FILE = "WRONG_FILE"
    ELISION = "ELISION"
    OVERLAP = "OVERLAP"
    TRUNCATED = "TRUNCATED"
    NO_CHANGE = "NO_CHANGE"
    SYNTAX = "SYNTAX"
    UNDEFINED = "UNDEFINED"
    """The new code uses a name that nothing defines."""
    NO_DEFINITION = "NO_DEFINITION"
    """The new code of a definition does not define it."""
    PROTECTED = "PROTECTED"

    @property
    def accepted(self) -> bool:
        """Whether the edit is accepted."""
        return self in {EditCode.APPLIED, EditCode.ALREADY_APPLIED}


class PatchEdit(Struct, frozen=True, kw_only=True):
    """One edit of an answer. `search` is used by kind "edit", `symbol` by the kinds "symbol" and "insert"."""

    kind: EditKind
    file_path: str
    search: str = ""
    replacement: str = ""
    """The new text of the span, the symbol or, for kind "create", the file; for kind "insert", the added text."""
    symbol: str = ""
    """The one that is replaced; for kind "insert", the one that the new text goes next to, or into."""
    place: InsertPlace = ""
    """Where an insert goes relative to `symbol`; "" for the other kinds."""


class EditReport(Struct, frozen=True, kw_only=True):
    """The result of one edit, with what the model needs to do better."""

    index: int
    """0-based position in the answer."""
    file_path: str
    kind: EditKind = "edit"
    code: EditCode
    tier: int = 0
    """1-6: the matching tier that decided; 0 if none did."""
    matches: int = 0
    lines: tuple[int, ...] = ()
    """1-based first lines of the places that matched."""
    detail: str = ""
    nearest: str = ""
    """The most similar real text, verbatim, if the search text was not found."""


class PatchResult(Struct, frozen=True, kw_only=True):
    """An answer's edits, judged together: all or none."""

    success: bool
    error_info: str = ""
    reports: tuple[EditReport, ...] = ()


class StepResult(Struct, frozen=True, kw_only=True):
    """What the coder answered for a step."""

    edits: tuple[PatchEdit, ...] = ()
    error_info: str = ""
    raw_response: str = ""
