"""Applies the edits of an answer to the texts of their files: all of them, or none."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditCode, EditReport, PatchEdit, PatchResult
from clean_room_agent.execute.edits.definition_answers import NoDefinition, import_place, whole_definition
from clean_room_agent.execute.edits.definitions import (
    SymbolSpan,
    definitions,
    moved,
    named,
    shown_ranges,
    symbol_spans,
)
from clean_room_agent.execute.edits.feedback import nearest, unseen_difference
from clean_room_agent.execute.edits.format import holds_tags, holds_unpaired_tags, unescaped
from clean_room_agent.execute.edits.indent_units import units_of
from clean_room_agent.execute.edits.insert import insertion
from clean_room_agent.execute.edits.rules import (
    EditOutcome,
    EditRules,
    elided_line,
    elided_search,
    only_symbols_shown,
    path_fault,
    refuse_content,
    refuse_path,
)
from clean_room_agent.execute.edits.search_replace import (
    LOOK_ALIKE_TIER,
    Hit,
    Splice,
    find,
    fitted,
    line_of,
    with_own_characters,
)
from clean_room_agent.execute.edits.static_checks import name_fault, syntax_fault
from clean_room_agent.syntax import grammar_of, parses_cleanly

ENTITIES = "write <, > and & themselves, not &lt;, &gt; and &amp;"
OUTSIDE_SHOWN = "the place is outside what was shown of this file, which is not a target of this step"
SAID_WHY = frozenset({EditCode.PROTECTED, EditCode.SYNTAX, EditCode.UNDEFINED})
"""Refusals of which the summary says why: other codes say it themselves, or need the text that really stands there."""
UNSHIFTED_TIERS = frozenset({1, 2, 3, 4})


class Applied(Struct, frozen=True, kw_only=True):
    """The judgment of an answer, and the texts it leads to."""

    result: PatchResult
    texts: dict[str, str | None]
    """Only changed files, by path in sorted order: the new text, or None for a deleted file. Empty on refusal."""


class _File(Struct, kw_only=True):
    """A file while the edits of one answer are tried on it."""

    text: str | None
    spans: tuple[SymbolSpan, ...] = ()
    """Of the symbols that the context shows."""
    written: list[tuple[int, int]] = field(default_factory=list)
    """What earlier edits of this answer changed, as character offsets in `text`."""


class _LocatedEdit(Struct, frozen=True, kw_only=True):
    splice: Splice
    tier: int
    imports: tuple[str, ...] = ()
    """Statements that the splice needs at the top of the file."""


def paths_named(edits: Iterable[PatchEdit]) -> tuple[str, ...]:
    """The paths that the edits name and that may name a file of the repository, sorted: what `apply_edits` reads."""
    return tuple(sorted({edit.file_path for edit in edits if not path_fault(edit.file_path)}))


def apply_edits(
    edits: tuple[PatchEdit, ...], files: Mapping[str, str], package: ContextPackage, rules: EditRules
) -> Applied:
    """Judge every edit in the answer's order, each against the result of those before it, and apply all or none.

    `files` holds the text (as `textfile.decode` gives it) of each existing, editable file that the edits name
    (`paths_named`). After a refusal the remaining edits are still judged, as if the refused one had not been there, so
    that one report tells all. HTML entities (`&lt;`) are replaced where only that makes the answer fit.
    """
    applied = _apply_edits(edits, files, package, rules)
    plain = tuple(_without_entities(edit, files.get(edit.file_path, "")) for edit in edits)
    if plain == edits or _is_clean(applied):
        return applied
    instead = _apply_edits(plain, files, package, rules)
    if _is_clean(instead) or (instead.result.success and not applied.result.success):
        return instead
    return _with_entities_named(applied, edits, plain)


def _without_entities(edit: PatchEdit, text: str) -> PatchEdit:
    return replace(edit, search=unescaped(edit.search, text), replacement=unescaped(edit.replacement, text))


def _is_clean(applied: Applied) -> bool:
    """Whether the answer fits, and all that it leads to can be parsed."""
    return applied.result.success and all(
        parses_cleanly(text.encode("utf-8", "replace"), path)
        for path, text in applied.texts.items()
        if text is not None and grammar_of(path) is not None
    )


def _with_entities_named(
    applied: Applied, edits: tuple[PatchEdit, ...], plain: tuple[PatchEdit, ...]
) -> Applied:
    """The judgment, where what was refused says that it has entities."""
    reports = tuple(
        report
        if report.code.accepted or edit == bare
        else replace(report, detail="; ".join(filter(None, (report.detail, ENTITIES))))
        for report, edit, bare in zip(applied.result.reports, edits, plain, strict=True)
    )
    return replace(applied, result=replace(applied.result, reports=reports))


def _apply_edits(
    edits: tuple[PatchEdit, ...], files: Mapping[str, str], package: ContextPackage, rules: EditRules
) -> Applied:
    gone = frozenset(edit.file_path for edit in edits if edit.kind == "delete")
    edited = _EditedTexts(files=files, package=package, rules=rules, gone=gone)
    reports = [edited.judge(index, edit) for index, edit in enumerate(edits)]
    if any(report.code is EditCode.APPLIED for report in reports):
        # Beside it, what changes nothing does no harm.
        reports = [
            replace(report, code=EditCode.ALREADY_APPLIED) if report.code is EditCode.NO_CHANGE else report
            for report in reports
        ]
    if all(report.code.accepted for report in reports):
        reports = edited.check_results(reports)
    success = bool(reports) and all(report.code.accepted for report in reports)
    texts = edited.changed() if success else {}
    error_info = "" if success else _summary(reports)
    result = PatchResult(success=success, error_info=error_info, reports=tuple(reports))
    return Applied(result=result, texts=texts)


class _EditedTexts:
    """The texts of one answer while its edits are applied."""

    def __init__(
        self, *, files: Mapping[str, str], package: ContextPackage, rules: EditRules, gone: frozenset[str]
    ) -> None:
        """`gone` are the files that the answer deletes: if one stays, none of its edits counts."""
        self._gone = gone
        self._made: set[str] = set()
        self._done: set[PatchEdit] = set()
        self._originals = dict(files)
        self._package = package
        self._rules = rules
        self._files: dict[str, _File] = {}
        self._tags_shown = any(holds_tags(item.text) for item in package.items)

    def judge(self, index: int, edit: PatchEdit) -> EditReport:
        """The result of one edit; an accepted one is applied to the edited texts, once where it is repeated."""
        same = replace(edit, search=_rstrip_lines(edit.search), replacement=_rstrip_lines(edit.replacement))
        is_repeated = same in self._done
        outcome = EditOutcome(EditCode.ALREADY_APPLIED) if is_repeated else self._try_edit(edit)
        if outcome.code is EditCode.APPLIED:
            self._done.add(same)
        return EditReport(
            index=index,
            file_path=edit.file_path,
            kind=edit.kind,
            code=outcome.code,
            detail=outcome.detail,
            tier=outcome.tier,
            matches=len(outcome.lines),
            lines=outcome.lines,
            nearest=outcome.nearest,
        )

    def _try_edit(self, edit: PatchEdit) -> EditOutcome:
        file = self._edited_file(edit.file_path)
        if file.text is not None and edit.kind in {"edit", "symbol", "insert"}:
            search, replacement = units_of(edit.file_path, file.text, edit.search, edit.replacement)
            edit = replace(edit, search=search, replacement=replacement)
        refusal = refuse_path(edit, self._rules, self._package, exists=edit.file_path in self._originals)
        if refusal is None and file.text is None:
            obstacle = self._rules.places.obstacle(edit.file_path, made=self._made, gone=self._gone)
            refusal = EditOutcome(EditCode.WRONG_FILE, obstacle) if obstacle else None
        if refusal is None and edit.kind != "delete":
            refusal = self._refuse_text(edit, file)
        if refusal is not None:
            return refusal
        if edit.kind == "create":
            return self._create_file(edit, file)
        if edit.kind == "delete":
            return self._delete_file(edit, file)
        if file.text is None:
            return EditOutcome(EditCode.WRONG_FILE, "the file does not exist; use <create file=...>")
        locate = {"insert": self._locate_insert, "symbol": self._locate_symbol, "edit": self._locate_search}
        found = locate[edit.kind](edit, file, file.text)
        return found if isinstance(found, EditOutcome) else self._apply_splice(edit, file, file.text, found)

    def check_results(self, reports: list[EditReport]) -> list[EditReport]:
        """`reports`, with a refusal at the last edit of each file that no longer parses, uses a name that nothing defines,
        or changes how tests are set up.
        """
        checked = list(reports)
        for path, text in self.changed().items():
            if text is None:
                continue
            before = self._originals.get(path)
            refusal = None if before is None else refuse_content(path, before, text, self._rules)
            refusal = _refuse_code(path, before or "", text) or refusal
            if refusal is not None:
                last = max(report.index for report in checked if report.file_path == path)
                checked[last] = replace(checked[last], code=refusal.code, detail=refusal.detail)
        return checked

    def changed(self) -> dict[str, str | None]:
        """The texts that differ from what was given, by path in sorted order."""
        return {
            path: file.text
            for path, file in sorted(self._files.items())
            if file.text != self._originals.get(path)
        }

    def _edited_file(self, path: str) -> _File:
        if path not in self._files:
            text = self._originals.get(path)
            items = [item for item in self._package.primary() if item.path == path]
            self._files[path] = _File(text=text, spans=symbol_spans(items, text) if text is not None else ())
        return self._files[path]

    def _refuse_text(self, edit: PatchEdit, file: _File) -> EditOutcome | None:
        """Why the text of an edit cannot be intended as it is."""
        current = file.text or ""
        if (
            (holds_unpaired_tags(edit.search) or holds_unpaired_tags(edit.replacement))
            and not self._tags_shown
            and not holds_tags(current)
        ):
            return EditOutcome(EditCode.TRUNCATED, "a tag inside the text has no other half: one is missing")
        line = elided_line(
            edit.file_path, edit.replacement, old=self._replaced_text(edit, file), file_text=current
        )
        if line:
            return EditOutcome(EditCode.ELISION, f"the text leaves something out: {line}")
        return None

    def _replaced_text(self, edit: PatchEdit, file: _File) -> str:
        if edit.kind != "symbol" or file.text is None:
            return edit.search
        return "\n".join(file.text[span.start : span.end] for span in named(file.spans, edit.symbol))

    def _create_file(self, edit: PatchEdit, file: _File) -> EditOutcome:
        original = self._originals.get(edit.file_path)
        if file.text is not None and file.text.strip():
            if file.text == edit.replacement:
                return EditOutcome(EditCode.ALREADY_APPLIED)
            if file.text != original:
                return EditOutcome(EditCode.OVERLAP, "an earlier edit of this answer writes the file")
            detail = "the file exists and is not empty; change it with <edit file=...>"
            return EditOutcome(EditCode.WRONG_FILE, detail)
        if file.text is None and original is not None:
            return EditOutcome(EditCode.OVERLAP, "an earlier edit of this answer deletes the file")
        file.text = edit.replacement
        self._made.add(edit.file_path)
        return EditOutcome(EditCode.APPLIED)

    def _delete_file(self, edit: PatchEdit, file: _File) -> EditOutcome:
        original = self._originals.get(edit.file_path)
        if file.text is None and original is None:
            return EditOutcome(EditCode.ALREADY_APPLIED, "the file does not exist")
        if file.text != original:
            return EditOutcome(EditCode.OVERLAP, "an earlier edit of this answer changes the file")
        file.text = None
        return EditOutcome(EditCode.APPLIED)

    def _locate_search(self, edit: PatchEdit, file: _File, text: str) -> _LocatedEdit | EditOutcome:
        if not edit.search.strip():
            return EditOutcome(EditCode.NO_MATCH, "the search text is empty")
        whole = not only_symbols_shown(edit.file_path, self._rules, self._package)
        scopes = shown_ranges(file.spans, text)
        match = find(text, edit.search, replacement=edit.replacement, scopes=scopes, whole_file=whole)
        if not match.hits:
            return self._outcome_without_match(edit, text, whole=whole)
        if len(match.hits) > 1:
            lines = tuple(line_of(text, hit.start) for hit in match.hits)
            return EditOutcome(EditCode.AMBIGUOUS, tier=match.tier, lines=lines)
        hit, replacement = match.hits[0], edit.replacement
        if match.tier >= LOOK_ALIKE_TIER:
            replacement = with_own_characters(text[hit.start : hit.end], edit.search, replacement)
        shifted = hit.shift.applied(replacement)
        if shifted is None:
            detail = (
                "the search text is indented too far, and the replacement cannot be moved left by as much"
            )
            return EditOutcome(EditCode.NO_MATCH, tier=match.tier, detail=detail)
        return _LocatedEdit(splice=fitted(text, hit.start, hit.end, shifted), tier=match.tier)

    def _outcome_without_match(self, edit: PatchEdit, text: str, *, whole: bool) -> EditOutcome:
        """What comes of a search text that does not occur where it may."""
        if not whole and find(text, edit.search).hits:
            return EditOutcome(EditCode.WRONG_FILE, OUTSIDE_SHOWN)
        original = self._originals.get(edit.file_path, "")
        if original != text and find(original, edit.search).hits:
            detail = "an earlier edit of this answer already changes this text; join the two into one edit"
            return EditOutcome(EditCode.OVERLAP, detail)
        standing = find(text, edit.replacement)
        if len(standing.hits) == 1 and standing.tier in UNSHIFTED_TIERS:
            (hit,) = standing.hits
            if _fills_lines(text, hit):
                lines = (line_of(text, hit.start),)
                return EditOutcome(EditCode.ALREADY_APPLIED, tier=standing.tier, lines=lines)
        line = elided_search(edit.search, text)
        if line:
            return EditOutcome(EditCode.ELISION, f"the search text leaves something out: {line}")
        near = nearest(text, edit.search)
        if near is None:
            return EditOutcome(EditCode.NO_MATCH, "nothing in the file is like the search text")
        detail = f"the nearest text begins at line {near.line}"
        if near.differing_line:
            detail += f" and first differs at line {near.differing_line}, where the search text has {near.expected!r}"
            detail += unseen_difference(near)
        return EditOutcome(EditCode.NO_MATCH, detail, nearest=near.text)

    def _locate_symbol(self, edit: PatchEdit, file: _File, text: str) -> _LocatedEdit | EditOutcome:
        """The place of a shown symbol: from the context, or else from the syntax of a file that is shown whole, or
        within the shown parts.
        """
        spans = named(file.spans, edit.symbol)
        shown_whole = any(
            item.symbol is None and item.path == edit.file_path for item in self._package.primary()
        )
        if not spans:
            shown_parts = shown_ranges(file.spans, text)
            inside = tuple(
                one
                for one in definitions(edit.file_path, text)
                if shown_whole or any(start <= one.start and one.end <= end for start, end in shown_parts)
            )
            spans = named(inside, edit.symbol)
        if not spans:
            shown = ", ".join(dict.fromkeys(span.symbol for span in file.spans))
            detail = f"the symbol {edit.symbol} is not shown" + (f"; shown: {shown}" if shown else "")
            return EditOutcome(EditCode.NO_MATCH, detail)
        if len(spans) > 1:
            lines = tuple(line_of(text, span.start) for span in spans)
            detail = f"the symbol {edit.symbol} is defined more than once; use <search>"
            return EditOutcome(EditCode.AMBIGUOUS, lines=lines, detail=detail)
        if not edit.replacement.strip():
            detail = "the replacement is empty; to remove a symbol, use <search> with its text"
            return EditOutcome(EditCode.NO_MATCH, detail)
        start, end = spans[0].start, spans[0].end
        whole = whole_definition(edit.file_path, text, (start, end), edit.symbol, edit.replacement)
        if isinstance(whole, NoDefinition):
            return EditOutcome(EditCode.NO_DEFINITION, whole.reason)
        return _LocatedEdit(splice=fitted(text, start, end, whole.text), tier=1, imports=whole.imports)

    def _locate_insert(self, edit: PatchEdit, file: _File, text: str) -> _LocatedEdit | EditOutcome:
        """The place of new code: next to its neighbour or in its class, in the present text."""
        splice = insertion(edit, text, shown=file.spans, written=file.written)
        if isinstance(splice, EditOutcome):
            return splice
        if only_symbols_shown(edit.file_path, self._rules, self._package) and not any(
            span.start <= splice.start <= span.end for span in file.spans
        ):
            return EditOutcome(EditCode.WRONG_FILE, OUTSIDE_SHOWN)
        return _LocatedEdit(splice=splice, tier=0)

    def _apply_splice(self, edit: PatchEdit, file: _File, text: str, found: _LocatedEdit) -> EditOutcome:
        splice = found.splice
        lines = (line_of(text, splice.start),)
        if text[splice.start : splice.end] == splice.text:
            detail = "the replacement is the text that stands there"
            return EditOutcome(EditCode.NO_CHANGE, tier=found.tier, lines=lines, detail=detail)
        core = splice.core(text)
        if any(core.start < end and start < core.end for start, end in file.written):
            detail = "an earlier edit of this answer already changes this place; join the two into one edit"
            return EditOutcome(EditCode.OVERLAP, tier=found.tier, lines=lines, detail=detail)
        delta = len(core.text) - (core.end - core.start)
        file.written = [
            (start + delta, end + delta) if start >= core.end else (start, end) for start, end in file.written
        ]
        file.written.append((core.start, core.start + len(core.text)))
        quoted = (splice.start, splice.end)
        if edit.kind == "insert":  # next to a symbol, it is no part of that symbol
            quoted = (splice.start - 1, splice.end + 1)
        file.spans = moved(file.spans, quoted, (core.start, core.end), len(core.text))
        file.text = text = splice.applied(text)
        if found.imports:
            place = import_place(edit.file_path, text, splice.start)
            ending = "\r\n" if "\r\n" in text else "\n"
            added = "".join(f"{line}{ending}" for line in found.imports)
            imported = _LocatedEdit(splice=Splice(start=place, end=place, text=added), tier=found.tier)
            self._apply_splice(edit, file, text, imported)
        return EditOutcome(EditCode.APPLIED, tier=found.tier, lines=lines)


def _refuse_code(path: str, before: str, after: str) -> EditOutcome | None:
    if fault := syntax_fault(path, before, after):
        return EditOutcome(EditCode.SYNTAX, fault)
    if fault := name_fault(path, before, after):
        return EditOutcome(EditCode.UNDEFINED, fault)
    return None


def _rstrip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _fills_lines(text: str, hit: Hit) -> bool:
    """Whether the place is whole lines that contain a word: a lone bracket that occurs once proves nothing."""
    before = text[text.rfind("\n", 0, hit.start) + 1 : hit.start]
    after = text[hit.end :].partition("\n")[0]
    return not before.strip() and not after.strip() and any(map(str.isalnum, text[hit.start : hit.end]))


def _summary(reports: list[EditReport]) -> str:
    return "; ".join(
        f"edit {report.index + 1} ({report.file_path}): {report.code.value}"
        + (f": {report.detail}" if report.code in SAID_WHY else "")
        for report in reports
        if not report.code.accepted
    )
