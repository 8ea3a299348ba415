"""Divides a report in words into what matters in it: calls, values, cues (`should be`, `instead of`), ends of sentences.

    `f(10)` returns 3, should be 4.    call  got  value  punctuation  want  got  value  stop

Pasted sessions and code blocks give the same: a statement before a call is its setup, the output below it a value that it
gave.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Generator, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.execute.goals.expressions import (
    ERROR_NAME,
    IDENTIFIER,
    SCRIPT_SETUP,
    Expressions,
    PythonExpressions,
    balanced_end,
    call_spans,
    python_module,
    string_end,
)

TokenKind = Literal["call", "value", "cue", "word", "comma", "clause", "line", "stop", "section"]
ValueKind = Literal["literal", "error", "bare", "output"]
"""`error`: the name of an exception; `bare`: text that stands for a string without quotes; `output`: what a session shows."""
Usable = Callable[[str, tuple[str, ...]], bool]
"""Whether an expression can be run after these statements."""

FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"(?:^[ \t]*>>> ?[^\n]*\n?(?:^(?![ \t]*>>>)[ \t]*\S[^\n]*\n?)*)+", re.MULTILINE)
TRACEBACK = re.compile(
    r"^[ \t]*Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*\n|\n)*[ \t]*([\w.]+)(?::[^\n]*)?$",
    re.MULTILINE,
)
CODE = re.compile(r"``([^\n]+?)``(?!`)|`([^`\n]+)`")
NUMBER = re.compile(
    r"(?<![\w.,/:#$%@~^\-])-?(?:\d[\d_]*\.\d+|\d[\d_]*)(?:[eE][+-]?\d+)?j?(?![\w%/:@°]|[.,]\d|-\w)"
)
CONSTANT = re.compile(r"\b(?:True|False|None|true|false|none|null|undefined|NaN)\b(?!\s+of\b)(?!\.\w|[\w(-])")
EMPTY = re.compile(
    r"\b(?:an? |the )?empty (list|array|string|str|tuple|dict|dictionary|object|set)\b", re.IGNORECASE
)
EMPTY_TEXTS = {
    "list": "[]", "array": "[]", "string": "''", "str": "''", "tuple": "()", "dict": "{}", "dictionary": "{}",
    "object": "{}", "set": "set()",
}  # fmt: skip
COUNTER = re.compile(
    r"(?:line|lines|version|python|node|issue|step|release|pr|bug|case|section|test|level|index|v|#)\s*\Z",
    re.IGNORECASE,
)
"""Before a number that is no value."""
UNIT = re.compile(r"[ \t]+([A-Za-z]+)")
"""The word behind a number."""
AFTER_NUMBER = frozenset(
    {
        "for", "when", "but", "and", "instead", "not", "rather", "is", "was", "are", "were", "be", "expected", "here", "on", "with", "in", "if", "because", "as", "while", "although", "though", "should", "which", "where", "at", "now", "again", "today", "since", "however", "or", "to", "from", "after", "before", "whereas", "wanted", "yet", "so", "than", "given", "by", "returned", "correct", "then", "it", "i", "fails", "fail", "failed", "gives", "breaks", "holds", "passes", "raises", "returns",
    }
)  # fmt: skip
"""Words that can follow a number that is a value; others are what is counted: 3 items."""
CUES: tuple[tuple[str, str], ...] = (
    ("asked", r"should(?:n['\u2019]t) (?:it|this|that|the|we)|so that|such that|ensure(?: that)?|make sure(?: that)?|please(?= (?:return|give|make|raise|yield|let))"),
    ("refuse", r"should(?: never| not|n['\u2019]t)|must(?: never| not|n['\u2019]t)|shouldnt|not supposed to|not expected to"),
    ("not_got", r"(?:does|do|did|will|would|is|was)(?: not|n['\u2019]t)(?: (?:correctly|properly|always|even|actually))?(?= (?:return|give|yield|produce|raise|throw|equal))(?: \w+)|isn['\u2019]t|wasn['\u2019]t|fails to (?:return|give|yield|produce|raise|throw)|never (?:returns|gives|yields|raises)|no longer (?:returns|gives|yields|raises|is)|used to (?:return|give|be|yield|raise)"),
    ("contrast", r"instead of|rather than|as opposed to|in place of|(?:and |but )?not(?! (?:the|a) (?:same|right|correct))(?= )"),
    ("but", r"but|however|yet|whereas|while|although|though|instead"),
    ("want", r"should(?: have| also| still| always| really| just)?|must|ought to(?: have)?|supposed to|expect(?:s|ed|ing|ation)?(?: results?| outputs?| values?| behaviou?rs?)?|wants?|wanted|correct(?: results?| outputs?| answers?| values?)?|right (?:answer|result|value|output)|desired(?: result| output)?|would (?:be|expect|have expected)|needs? to|has to|make"),
    ("strong_got", r"got|gets|getting|get|actual(?:ly)?(?: results?| outputs?| values?| behaviou?rs?)?|received|observed|currently|crash(?:es|ed)?(?: with)?|fail(?:s|ed)?(?: with)|dies with|blows up(?: with)?|wrongly|incorrectly"),
    ("end", r"(?:ends?|ending|ended) (?:with|in)|(?:last|final) (?:element|item|chunk|entry|value|one|group|batch|line|character|char)(?: of \w+)?"),
    ("start", r"(?:starts?|starting|started|begins?|beginning) with|first (?:element|item|chunk|entry|value|one|group|batch|character|char)(?: of \w+)?"),
    ("got", r"returns?|returned|returning|gives?|gave|giving|given back|yields?|yielded|yielding|produces?|produced|producing|prints?|printed|outputs?|raises?|raised|raising|throws?|threw|thrown|throwing|is|was|are|were|be|been|being|equals?|rejects?(?: with)?|rejected with|resolves?(?: to| with)?|resolved to|evaluates? to|results? in|result|(?:comes?|came) (?:out|back)(?: as)?|becomes?|became|shows?|shown|->|=>|→|(?<![!<>])===?|(?<![!<>=])=(?!=)"),
)  # fmt: skip
CUE = re.compile(
    "|".join(rf"(?P<{name}>(?<![\w.-])(?:{words})(?![\w(]))" for name, words in CUES), re.IGNORECASE
)
SECTION = re.compile(
    r"^[ \t#*_>-]*(?:(?P<want>expected|what (?:i|you|we) expect(?:ed)?|desired|should be|correct)|"
    r"(?P<got>actual|current|observed|what happen(?:s|ed)|got|result))"
    r"(?: (?:behaviou?rs?|results?|outputs?|values?|to (?:happen|see)|happens|instead|currently|now))*[:*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
HEADING = re.compile(r"^[ \t]*#+ ", re.MULTILINE)
CURLY = re.compile("\u201c([^\u201d\n]*)\u201d|\u2018([^\u2019\n]*)\u2019")
ERROR_TEXT = re.compile(rf"[\"']({ERROR_NAME.pattern})(?=:|[\"']\Z)")
"""A string that says which error was raised."""
COMPARED = re.compile(r"[ \t]*(?:[=!]==?|[<>]=?)[ \t]*")
DISPLAY = re.compile(r"(?<![\w)\]])[\[{]")
COMPUTED = re.compile(r"[ \t]*(?:\*\*?|//|<<|>>|[-+%]|(?<=[ \t])(?:not )?in(?=[ \t]))[ \t]*(?=[\w\"'\[({])")
"""Between a call and what it is computed with, if that is a call or a value."""
UNCLEAR_BEFORE = re.compile(r"(?:\b\d[\w.]*|[\])}\"'])[ \t]*(?:\*\*?|//|<<|>>|[-+%/&|^@])[ \t]*\Z")
UNCLEAR_AFTER = re.compile(r"[ \t]*(?:\)[ \t]*[-+*/%&|^@]|[/&|^@][ \t]*(?:[\d\"'\[({]|[\w.]+\())")
"""Beside a call, what makes it a part of something that is computed, or one of several calls: "f(1) / f(2) should be 3"."""
DERIVED_BEFORE = re.compile(
    r"\b(?!(?:results?|outputs?|values?|outcome|answer|calls?|behaviou?rs?|use|usage|evaluation|invocation|execution|case|because|instead|example) of)\w+ of[ \t]+`?\Z|(?<![`'])\blambda[^:\n]{0,20}:[ \t]*\Z",
    re.IGNORECASE,
)
"""Before a call, what says that something else than its value is meant: "the length of f(1) should be 3"."""
NOT_THIS = re.compile(r"(?:\b(?:but|and)|,)[ \t]+\Z", re.IGNORECASE)
"""Before "not f(10)", where that is no code."""
WORD = re.compile(r"[^\W\d_][\w'\u2019-]*|[\w$]+")
BLANK_LINE = re.compile(r"\n[ \t]*\n")
STOP = re.compile(r"[.!?](?=\s|$)")
COMMENT = re.compile(r"\s(?:#|//)[ \t]*(?P<words>[^\n]*)$")
PRINTED = re.compile(r"(?:print|console\.log|pprint)\((?P<inner>.*)\)\s*;?\s*\Z", re.DOTALL)
ASSERTED = re.compile(r"assert\s+(?P<inner>.+?)(?:,\s*[fr]?[\"'][^\n]*)?\Z", re.DOTALL)
SCRIPT_IMPORT = re.compile(r"\s*(?:import\b|(?:const|let|var)\b[^=]*=\s*(?:await\s+)?(?:require|import)\()")


class Token(Struct, frozen=True, kw_only=True):
    """A piece of a report."""

    kind: TokenKind
    text: str
    at: int
    """Where it begins in the report."""
    end: int
    value: ValueKind = "literal"
    asserted: bool = False
    """Of a value: whether an `assert` compares the call before with it."""
    setup: tuple[str, ...] = ()
    """Of a call: the statements before it that it needs."""


def _value_token(text: str, at: int, end: int | None = None, kind: ValueKind = "literal") -> Token:
    """A value; of code, which does not stand in the report as it is read, without an extent (`end` is None)."""
    return Token(kind="value", text=text, at=at, end=at if end is None else end, value=kind)


def _error_token(name: str, at: int, end: int | None = None) -> Token:
    """The name of an exception, without its module."""
    return _value_token(name.rpartition(".")[2], at, end, "error")


class ReportReader:
    """Reads the tokens of one report."""

    def __init__(self, language: Expressions, usable: Usable) -> None:
        self._language = language
        self._usable = usable
        self._is_python = isinstance(language, PythonExpressions)
        self._setup: list[str] = []

    def tokens(self, text: str) -> Iterator[Token]:
        """The tokens of the report, in its order."""
        place = 0
        for start, end, kind in self._non_prose_spans(text):
            yield from self._prose_tokens(text, place, start)
            if kind == "traceback":
                found = TRACEBACK.search(text, start, end)
                yield Token(kind="cue", text="got", at=start, end=start)
                yield _error_token(found[1] if found else "", start, end)
            else:
                inner = FENCE.match(text, start) if kind == "fence" else None
                code = inner[2] if inner else text[start:end]
                yield from self._code_tokens(code, inner.start(2) if inner else start)
            place = end
        yield from self._prose_tokens(text, place, len(text))

    def _non_prose_spans(self, text: str) -> list[tuple[int, int, str]]:
        """(begin, end, kind) of the parts that are no prose."""
        found = [(match.start(), match.end(), "fence") for match in FENCE.finditer(text)]
        for pattern, kind in ((SESSION, "session"), (TRACEBACK, "traceback")):
            for match in pattern.finditer(text):
                if not any(start < match.end() and match.start() < end for start, end, _ in found):
                    found.append((match.start(), match.end(), kind))
        return sorted(found)

    # Code

    def _code_tokens(self, code: str, at: int) -> Iterator[Token]:
        if ">>>" in code:
            yield from self._session_tokens(code, at)
        elif self._is_python:
            yield from self._python_block(textwrap.dedent(code), at)
        else:
            yield from self._script_block(code, at)

    def _session_tokens(self, code: str, at: int) -> Iterator[Token]:
        statement: list[str] = []
        output: list[str] = []
        lines = [*textwrap.dedent(code).splitlines(), ">>> "]
        for line in lines:
            stripped = line.strip()
            if stripped.startswith(">>>"):
                if statement:
                    yield from self._entry_tokens("\n".join(statement), output, at)
                statement, output = [stripped[3:].removeprefix(" ")], []
            elif stripped.startswith("...") and not output and statement:
                statement.append(line.strip()[3:].removeprefix(" "))
            else:
                output.append(line)

    def _entry_tokens(self, statement: str, output: list[str], at: int) -> Iterator[Token]:
        """The tokens of one statement of a session, and of what it printed."""
        statement, words = _without_comment(statement)
        if not statement.strip():
            yield from self._prose_tokens_at(words, at)
            return
        is_call, compared = yield from self._statement_tokens(statement, at)
        shown = "\n".join(output).strip("\n")
        if is_call and shown.strip() and not compared:
            first, _, rest = shown.partition("\n\n")
            said, remark = _without_comment(first.rstrip())
            error = TRACEBACK.search(shown)
            yield Token(kind="cue", text="got", at=at, end=at)
            if error is not None:
                yield _error_token(error[1], at)
            elif (name := ERROR_NAME.match(said.strip())) is not None:
                yield _error_token(name[0], at)
            else:
                yield _value_token(
                    said.strip(), at, kind="literal" if self._language.is_value(said) else "output"
                )
            yield Token(kind="line", text="\n", at=at, end=at)
            for part in (remark, rest):
                yield from self._prose_tokens_at(part, at)
        if words:
            yield from self._prose_tokens_at(words, at)

    def _python_block(self, code: str, at: int) -> Iterator[Token]:
        lines = code.splitlines()
        tree = python_module(code)
        if tree is None:
            for line in lines:
                yield from self._loose_line(line, at)
            return
        for node in tree.body:
            statement, words = _without_comment("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if len(tree.body) == 1 and isinstance(node, ast.Expr) and self._language.is_value(statement):
                yield _value_token(statement.strip(), at)
                continue
            yield from self._statement_tokens(statement, at)
            below = lines[node.end_lineno or 0 :][:1]
            if below and below[0].strip().startswith("#"):
                words = f"{words} {below[0].strip(' #')}"
            if words:
                yield from self._comment_tokens(words, at)

    def _loose_line(self, line: str, at: int) -> Iterator[Token]:
        statement, words = _without_comment(line)
        if python_module(statement.strip()) is None:
            yield from self._prose_tokens_at(line, at)
        else:
            if self._language.is_value(statement):
                yield _value_token(statement.strip(), at)
            else:
                yield from self._statement_tokens(statement.strip(), at)
            if words:
                yield from self._comment_tokens(words, at)
        yield Token(kind="line", text="\n", at=at, end=at)

    def _script_block(self, code: str, at: int) -> Iterator[Token]:
        for line in code.splitlines():
            statement, words = _without_comment(line)
            statement = statement.strip().rstrip(";")
            if SCRIPT_IMPORT.match(statement) or not statement:
                pass
            elif self._language.is_value(statement):
                yield _value_token(statement, at)
            elif SCRIPT_SETUP.match(statement) or self._language.free_names(statement) is not None:
                yield from self._statement_tokens(statement, at)
            else:
                yield from self._prose_tokens_at(line, at)
                continue
            if words:
                yield from self._comment_tokens(words, at)
            yield Token(kind="line", text="\n", at=at, end=at)

    def _comment_tokens(self, words: str, at: int) -> Iterator[Token]:
        """A comment behind a call: a bare value in it is what the call gives."""
        words = words.strip()
        begun = words.removeprefix("=>").removeprefix("->").removeprefix("==").strip()
        if (
            self._language.is_value(begun)
            or begun != words
            or NUMBER.match(begun)
            or begun[:1] in "[{('\""
            or ERROR_NAME.match(begun)
        ):
            yield Token(kind="cue", text="got", at=at, end=at)
        yield from self._prose_tokens_at(begun, at)

    def _prose_tokens_at(self, words: str, at: int) -> Iterator[Token]:
        """The tokens of text that does not stand in the report as it is here."""
        for token in self._prose_tokens(words, 0, len(words)):
            yield replace(token, at=at, end=at)

    def _statement_tokens(self, source: str, at: int) -> Generator[Token, None, tuple[bool, bool]]:
        """The tokens of one statement; returns whether it calls something that can be run, and whether it compares that."""
        source = source.strip().rstrip(";")
        asserted = ASSERTED.match(source) if self._is_python else None
        printed = PRINTED.match(source)
        if printed is not None and self._language.free_names(printed["inner"]) is not None:
            source = printed["inner"]
        expression = asserted["inner"] if asserted else source
        sides = self._language.comparison(expression) if asserted else None
        called, wanted = sides or (expression, "True")
        if self._language.free_names(called) is not None and (
            not asserted or self._language.is_value(wanted)
        ):
            call = self._call_token(self._assigned_call(called), at)
            if call is not None:
                if not asserted:
                    self._setup.append(source)
                yield call
                if asserted:
                    yield Token(kind="value", text=wanted, at=at, end=at, asserted=True)
                return True, bool(asserted)
        self._setup.append(source)
        yield Token(kind="line", text="\n", at=at, end=at)
        return False, False

    def _assigned_call(self, expression: str) -> str:
        """The call that the name was assigned last; the expression itself if it is no such name."""
        for source in reversed(self._setup):
            found = re.match(
                rf"(?:(?:const|let|var)\s+)?{re.escape(expression)}\s*=(?!=)\s*(?P<value>.+)\Z",
                source,
                re.DOTALL,
            )
            if found is not None and IDENTIFIER.fullmatch(expression):
                return found["value"]
            if re.search(rf"\b{re.escape(expression)}\b", source):
                break  # changed since
        return expression

    def _call_token(self, text: str, at: int, end: int = -1) -> Token | None:
        text = " ".join(text.split()) if "\n" in text and '"""' not in text else text.strip()
        free = self._language.free_names(text)
        if free is None or not self._language.has_call(text):
            return None
        setup = needed_setup(self._setup, free, self._language)
        if not self._usable(text, setup):
            return None
        return Token(kind="call", text=text, at=at, end=at if end < 0 else end, setup=setup)

    # Prose

    def _prose_tokens(self, text: str, start: int, stop: int) -> Iterator[Token]:
        calls = self._called_expressions(text, start, stop)
        place = start
        while place < stop:
            token = self._token_at(text, place, stop, calls)
            if token is None:
                place += 1
                continue
            if isinstance(token, Token):
                yield token
                place = max(token.end, place + 1)
            else:
                yield from token
                place = max(token[-1].end if token else place, place + 1)

    def _called_expressions(self, text: str, start: int, stop: int) -> dict[int, int]:
        """The end of each call in the words, by its beginning; calls that are compared with each other, or computed with
        something, are one expression.
        """
        calls = {}
        for begin, end in call_spans(text[:stop]):
            contrasted = text.startswith("not ", begin) and NOT_THIS.search(text, max(0, begin - 80), begin)
            if begin >= start:
                calls[begin + len("not ") if contrasted else begin] = end
        for begin in sorted(calls, reverse=True):
            while operator := COMPUTED.match(text, calls[begin]):
                other = operator.end()
                end = calls.get(other) or self._end_of_operand(text, other, stop, operator[0].strip())
                if not end:
                    break
                calls[begin] = end
                calls.pop(other, None)
        for begin, end in sorted(calls.items(), reverse=True):
            compared = COMPARED.match(text, end)
            other = compared.end() if compared else stop
            if other in calls and not any(
                self._language.is_value(text[one : calls[one]]) for one in (begin, other)
            ):
                calls[begin] = calls.pop(other)
        return self._with_displays(calls, text, start, stop)

    def _with_displays(self, calls: dict[int, int], text: str, start: int, stop: int) -> dict[int, int]:
        """With lists, dicts and sets of calls as one expression each."""
        place = start
        while (found := DISPLAY.search(text, place, stop)) is not None:
            begin, end = found.start(), balanced_end(text, found.start())
            inside = [one for one in calls if begin < one < end]
            held = any(one < begin < calls[one] for one in calls)
            place = begin + 1
            if (
                inside
                and not held
                and text[end : end + 1] != "("
                and self._language.has_call(text[begin:end])
            ):
                calls = {one: to for one, to in calls.items() if one not in inside} | {begin: end}
                place = end
        return calls

    def _end_of_operand(self, text: str, at: int, stop: int, operator: str) -> int:
        """Where the value ends that stands there behind an operator; 0 if none does that goes with it."""
        number = NUMBER.match(text, at)
        if number is not None:
            return number.end() if not operator.endswith("in") else 0
        end = _literal_end(text, at)
        named = operator.endswith("in") and text[at] in "\"'"  # "f(10) in 'utils.py' returns 3"
        return end if 0 < end <= stop and not named and self._language.is_value(text[at:end]) else 0

    def _token_at(self, text: str, at: int, stop: int, calls: dict[int, int]) -> "Token | list[Token] | None":
        char = text[at]
        begun = _line_start(text, at, stop)
        if begun is not None or char.isspace():
            return begun
        if char == "`" and (code := CODE.match(text, at)) is not None and code.end() <= stop:
            derived = DERIVED_BEFORE.search(text, max(0, at - 80), at)
            whole = (code[1] or code[2]).strip()
            shown = self._last_statement(whole)
            if not shown or (derived and self._language.has_call(shown)):
                return Token(kind="word", text=shown, at=at, end=code.end())
            found = self._inline_code_tokens(shown, at, code.end())
            if shown != whole:
                self._setup.append(shown)
            return found
        if at in calls:
            if text.startswith("not ", at) or _is_part(text, at, calls[at]):
                return Token(kind="word", text=text[at : calls[at]], at=at, end=calls[at])
            return self._call_or_word_token(text[at : calls[at]], at, calls[at])
        return (
            self._literal_token(text, at, stop) or _punctuation_token(text, at) or _word_token(text, at, stop)
        )

    def _call_or_word_token(self, text: str, at: int, end: int) -> Token:
        found = self._call_token(text, at, end)
        if found is not None:
            return found
        if self._language.is_value(text):
            return _value_token(text, at, end)
        if (error := ERROR_NAME.match(text)) is not None and text[error.end() : error.end() + 1] == "(":
            return _error_token(error[0], at, end)
        return Token(kind="word", text=text, at=at, end=end)

    def _inline_code_tokens(self, code: str, at: int, end: int) -> "Token | list[Token]":
        language = self._language
        error = re.match(rf"(?:{ERROR_NAME.pattern})(?=:|\Z)", code)
        if error is not None:  # its message may name calls
            return _error_token(error[0], at, end)
        asserted = ASSERTED.match(code)
        sides = language.comparison(asserted["inner"] if asserted else code)
        if sides is not None and language.has_call(sides[0]) and language.is_value(sides[1]):
            call = self._call_token(sides[0], at, end)
            if call is not None:
                compared = Token(kind="value", text=sides[1], at=at, end=end, asserted=True)
                return [call, compared]
        if code.startswith(">>> ") or (
            any(True for _ in call_spans(code)) and language.free_names(code) is None
        ):
            tokens = (
                self._session_tokens(code, at) if code.startswith(">>> ") else self._prose_tokens_at(code, at)
            )
            return [replace(one, end=end) for one in tokens]
        if language.free_names(code) is not None and language.has_call(code) and not language.is_value(code):
            return self._call_or_word_token(code, at, end)
        if re.fullmatch(r"[A-Za-z_$][A-Za-z_$.]*", code) and not language.is_value(code):
            return Token(kind="word", text=code, at=at, end=end)
        return _value_token(code, at, end, "literal" if language.is_value(code) else "bare")

    def _last_statement(self, code: str) -> str:
        """The last of several statements on one line, if it is an expression; the others, or all, are what later calls may need."""
        tree = python_module(code) if self._is_python else None
        if tree is None or len(tree.body) < 2 or any(hasattr(one, "body") for one in tree.body):
            return code
        last = ast.unparse(tree.body[-1]) if isinstance(tree.body[-1], ast.Expr) else ""
        self._setup.append("; ".join(map(ast.unparse, tree.body[:-1] if last else tree.body)))
        return last

    def _literal_token(self, text: str, at: int, stop: int) -> Token | None:
        before = text[at - 1] if at else " "
        if not (before.isalnum() or before in "_."):
            if (constant := CONSTANT.match(text, at)) is not None:
                return self._constant_token(constant)
            empty = EMPTY.match(text, at)
            shown = EMPTY_TEXTS[empty[1].lower()] if empty is not None else ""
            if empty is not None and self._language.is_value(shown):
                return _value_token(shown, at, empty.end())
        if (number := NUMBER.match(text, at)) is not None:
            return self._number_token(text, number)
        if (closed := CURLY.match(text, at)) is not None:
            return _value_token(repr(closed[1] or closed[2]), at, closed.end())
        end = _literal_end(text, at)
        if not 0 < end <= stop or before.isalnum() or not self._language.is_value(text[at:end]):
            return None
        said = ERROR_TEXT.match(text[at:end])
        return _value_token(text[at:end], at, end) if said is None else _error_token(said[1], at, end)

    def _number_token(self, text: str, number: re.Match[str]) -> Token:
        begin, end = number.span()
        after = UNIT.match(text, end)
        counted = after is not None and after[1].lower() not in AFTER_NUMBER
        if counted or COUNTER.search(text[max(begin - 20, 0) : begin]):
            return Token(kind="word", text=number[0], at=begin, end=end)
        return _value_token(number[0], begin, end)

    def _constant_token(self, found: re.Match[str]) -> Token | None:
        text = found[0]
        if self._is_python:
            if text in {"undefined", "NaN"}:
                return None
            text = {"true": "True", "false": "False", "none": "None", "null": "None"}.get(text, text)
        elif text in {"True", "False", "None", "none"}:
            text = {"True": "true", "False": "false"}.get(text, "null")
        return _value_token(text, found.start(), found.end())


def _is_part(text: str, at: int, end: int) -> bool:
    """Whether the call there is only a part of what is spoken of."""
    near = max(0, at - 80)
    return any(
        (
            UNCLEAR_BEFORE.search(text, near, at),
            UNCLEAR_AFTER.match(text, end),
            DERIVED_BEFORE.search(text, near, at),
        )
    )


def _line_start(text: str, at: int, stop: int) -> Token | None:
    """The token of a line break, or of a heading that begins there."""
    broken = text[at] == "\n"
    section = SECTION.match(text, at + broken) if broken or at == 0 else None
    if section is not None and section.end() <= stop:
        return Token(kind="section", text="want" if section["want"] else "got", at=at, end=section.end())
    if not broken:
        return None
    if HEADING.match(text, at + 1):
        return Token(kind="section", text="", at=at, end=at + 1)
    blank = BLANK_LINE.match(text, at)
    return Token(kind="stop" if blank else "line", text="\n", at=at, end=blank.end() - 1 if blank else at + 1)


def _punctuation_token(text: str, at: int) -> Token | None:
    """The token of a punctuation mark."""
    char = text[at]
    stopped = STOP.match(text, at)
    if stopped is not None:
        return Token(kind="stop", text=char, at=at, end=stopped.end())
    return (
        Token(kind="clause" if char == ";" else "comma", text=char, at=at, end=at + 1)
        if char in ";:,()"
        else None
    )


def _word_token(text: str, at: int, stop: int) -> Token | None:
    """The token of an exception's name, a cue or another word."""
    before = text[at - 1] if at else " "
    if not (before.isalnum() or before in "_."):
        error = ERROR_NAME.match(text, at)
        if error is not None:
            return _error_token(error[0], at, error.end())
        cue = CUE.match(text, at)
        if cue is not None and cue.end() <= stop:
            return Token(kind="cue", text=str(cue.lastgroup), at=at, end=cue.end())
    word = WORD.match(text, at)
    return Token(kind="word", text=word[0], at=at, end=word.end()) if word is not None else None


def _literal_end(text: str, at: int) -> int:
    """Where the literal that begins there would end; -1 if none begins."""
    char, following = text[at], text[at + 1 : at + 2]
    if char in "\"'" or (char in "rbRB" and following in {'"', "'"}):
        return string_end(text, at if char in "\"'" else at + 1)
    end = balanced_end(text, at) if char in "[{(" else -1
    is_group = char == "(" and "," not in text[at:end] and text[at:end] != "()"
    is_link = text[end : end + 1] == "("
    return -1 if is_group or is_link else end


def needed_setup(statements: list[str], names: frozenset[str], language: Expressions) -> tuple[str, ...]:
    """Those of the statements, in order, that bind one of the names, or change what it is bound to."""
    needed, kept = set(names), []
    for source in reversed(statements):
        bound, used, changed = language.effects(source)
        if bound & needed or changed & needed:
            kept.append(source)
            needed |= used
    return tuple(reversed(kept))


def _without_comment(source: str) -> tuple[str, str]:
    """The code, and the words of the comment at its end ("" for none)."""
    if source.lstrip().startswith(("#", "//")):
        return "", source.lstrip(" #/\t")
    found = COMMENT.search(source)
    if found is None or source[: found.start()].count('"') % 2 or source[: found.start()].count("'") % 2:
        return source, ""
    return source[: found.start()], found["words"].strip()
