"""Reads which calls a report in words makes, and which values it says that they give now, and should give.

A cue gives the next value its role, over at most a few words that say nothing; `instead of` gives it the opposite of the
last value's; after a value, `is expected` gives that its role. A value without a cue has none. For example:

    f(10) returns 3, should be 4            got 3, wanted 4
    expected 4 but got 3 from f(10)         wanted 4, got 3
    f(10) should give 4 instead of 3        wanted 4, got 3
    f(10) returns 3 (in version 2.1)        got 3; 2.1 is no value

Nothing is concluded here: which of the values a call really gives is found out by running it. The examples in a
definition's documentation give claims as well.
"""

import re
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.execute.goals.expressions import (
    IDENTIFIER,
    Expressions,
    PythonExpressions,
    ScriptExpressions,
    call_spans,
)
from clean_room_agent.execute.goals.report_tokens import (
    CUE,
    ReportReader,
    Token,
    Usable,
    ValueKind,
    needed_setup,
)

Role = Literal["got", "wanted", "asserted", ""]
Part = Literal["", "end", "start"]
FILLERS = frozenset(
    {
        "a", "an", "the", "value", "values", "result", "results", "of", "string", "number", "int", "integer", "float", "list", "tuple", "dict", "set", "to", "it", "just", "only", "simply", "always", "exactly", "me", "us", "back", "that", "this", "resolve", "reject", "return", "give", "raise", "throw", "yield", "produce", "equal", "exception", "error", "rather", "plain", "boolean", "bool", "array", "object", "we", "i", "you", "and", "both", "like", "with", "as", "in", "out", "wrong", "incorrect", "bad", "unexpected", "right", "correct", "expected", "proper", "usual", "following",
    }
)  # fmt: skip
"""Words that can stand between a cue and its value."""
CONTAINERS = frozenset({"list", "tuple", "string", "dict", "set", "array", "with", "in"})
"""After these, a number is not the whole value."""
PROMPT = re.compile(r"^[ \t]*In \[\d+\]: ", re.MULTILINE)
OUTPUT = re.compile(r"^[ \t]*Out\[\d+\]: ", re.MULTILINE)
"""How IPython shows what it is given, and what comes of it."""
MAX_GAP = 5
BARE_END = re.compile(
    r"[.,;:](?=\s|$)|[)\n\[{(\"'`?!]|\s[\w.]+\(|\s(?:but|instead|rather|not|when|for|and|while|whereas|should|expected|with|if|because|which|although|though|from|is|was|where|since|whenever|given)\b"
)
OPPOSITE: dict[Role, Role] = {"got": "wanted", "wanted": "got"}
BETWEEN = frozenset({"(", "is", "was", "were", "are", "would", "be", "what", "the", "a"})
"""What can stand between a value and a cue behind it: 4 is what is expected."""
CONDITIONS = frozenset(
    {"if", "when", "whenever", "given", "unless", "for", "with", "without", "on", "under", "in", "using"}
)
"""Words that begin another case than that of the call."""
PLACES = frozenset({"for", "with", "on", "under", "in", "using"})
"""Those of them that hold no longer than their sentence."""
WHEN_IT_SHOULD = re.compile(
    r"(?:when|where) (?:(?:it|this|that|i|we|you|the (?:result|answer|value)) )?(?:should|would|ought|must|expect|want|need)|with the",
    re.IGNORECASE,
)
OTHER_CASE = re.compile(
    r"[`'\")\]]*\s+(?:(?:if|when|whenever|unless|with|without|given|using)\s|or (?:more|less|greater|higher|lower|bigger|so|fewer)\b)",
    re.IGNORECASE,
)
"""Behind a value that is wanted only in another case, or that is a bound."""
POSTFIX = frozenset({"returned", "given", "produced", "raised", "thrown", "printed", "shown", "yielded"})
"""Verbs that a value can stand before: 3 is returned."""
NO_VALUES = frozenset(
    {
        "what", "which", "that", "where", "when", "how", "why", "who", "broken", "ignored", "lost", "dropped", "needed", "fine", "ok", "okay", "slow", "fast", "not", "no", "there", "here", "also", "still", "now", "called", "used", "supposed", "different", "missing", "inclusive", "too", "very", "more", "less",
    }
)  # fmt: skip
"""Words after a cue that are no value."""
MEASURES, HAVING = frozenset({"length", "size", "len", "count"}), frozenset({"has", "have", "its"})
"""Words after which a value is that of something else than the call: f(10) has length 3."""
MODALS = frozenset({"should", "must", "ought to", "supposed to", "needs to", "need to", "has to", "make"})
"""Cues that a verb follows, not a value."""
PREPOSED = frozenset({"for", "from", "with", "of", "on", "calling", "in", "by", "when", "as"})
MAX_EXAMPLES = 20
PYTHON, SCRIPT = PythonExpressions(), ScriptExpressions()
SCRIPT_LINE = re.compile(
    r"(?P<code>[^\s/*`][^`]*?)?;?\s*//\s*(?:[-=]+>|→|[Rr]eturns?:?|logs?:?)?\s*(?P<value>\S.*)"
)
"""A line of an example with what it gives in a comment, or that comment below it."""
LOGGED = re.compile(r"console\.log\((.*)\)", re.DOTALL)


class StatedValue(Struct, frozen=True, kw_only=True):
    """A value that a report gives a call."""

    text: str
    """As source text; of `bare` and `output`, as written; the name of an `error`."""
    kind: ValueKind = "literal"
    role: Role = ""
    part: Part = ""
    """Whether it is only the end or the start of what the call gives."""


class Claim(Struct, frozen=True, kw_only=True):
    """A call in a report, and the values that the report gives it."""

    call: str
    setup: tuple[str, ...] = ()
    values: tuple[StatedValue, ...] = ()
    must_not_fail: bool = False
    """Whether the report says that it should not raise, and nothing else of what it should do."""


class _OpenClaim(Struct):
    """A claim that is being read."""

    call: str = ""
    setup: tuple[str, ...] = ()
    sentence: int = 0
    """The number of the sentence that its call stands in."""
    values: list[StatedValue] = field(default_factory=list)
    preposed: bool = False
    """Whether its first value stands before it: 3 for f(10)."""
    must_not_fail: bool = False


def names_in(text: str, language: Expressions) -> tuple[str, ...]:
    """The plain or dotted names that the report calls, in its order."""
    names: dict[str, None] = {}
    for start, end in call_spans(text):
        names.update(dict.fromkeys(language.called(text[start:end].removeprefix("not "))))
    return tuple(names)


def passed_in(text: str, language: Expressions) -> tuple[str, ...]:
    """The names that the report's calls need from outside, whether they call them or pass them on."""
    names: dict[str, None] = {}
    for start, end in call_spans(text):
        names.update(dict.fromkeys(sorted(language.free_names(text[start:end]) or ())))
    return tuple(names)


def read_report(text: str, language: Expressions, usable: Usable) -> tuple[Claim, ...]:
    """The claims of the report about calls that are `usable`, in its order, each call once."""
    text = OUTPUT.sub("", PROMPT.sub(">>> ", text))
    reader = _Reader(text, usable, language)
    for token in ReportReader(language, usable).tokens(text):
        reader.read(token)
    return reader.result()


class _Reader:
    """Gives the values of a report their roles, token by token."""

    def __init__(self, text: str, usable: Usable, language: Expressions) -> None:
        self._language = language
        self._text = text
        self._usable = usable
        self._elsewhere = False
        """Whether what is said now is about something else than the last call: another name, or another case."""
        self._for_long = False
        """Whether that holds beyond the sentence, up to the next call or heading."""
        self._claims: list[_OpenClaim] = []
        self._before = _OpenClaim()
        """Holds the values of this sentence before the first call, which belong to it."""
        self._waiting: list[StatedValue] = []
        """Values of the sentences before that; they belong to the only call, if there is just one."""
        self._sentence = 0
        self._section: Role = ""
        """Of the values below the last heading: "### Expected"."""
        self._pending: Role = ""
        """Of the next value, as the last cue has it."""
        self._modal: Role = ""
        """Of a cue whose value comes after a verb, which has a role of its own elsewhere: "should return 4"."""
        self._held = False
        """Whether the pending role is of a contrast, so that a verb between does not change it."""
        self._is_what = False
        """Whether the next cue is about the last value: 4 is what f(10) should give."""
        self._asserting = False
        """Whether the call that was read last stands behind an `assert` in prose."""
        self._cued = False
        """Whether it is a cue of this sentence that asks for a value, and not only a heading."""
        self._part: Part = ""
        self._gap: list[str] = []
        """The words since the cue."""
        self._last: _OpenClaim | None = None
        """The claim whose last value is the last one of this sentence; None if it has none, or none that counts."""
        self._after: list[str] = []
        """What stood since the last value."""
        self._skip_to = 0
        self._value_end = 0
        """Where the value that is being read ends."""

    def read(self, token: Token) -> None:
        """Take the next token."""
        if token.at < self._skip_to and token.end <= self._skip_to:
            return
        getattr(self, f"_on_{token.kind}")(token)

    def result(self) -> tuple[Claim, ...]:
        """The claims, those about one call put together."""
        if len(self._claims) == 1:
            self._claims[0].values += self._waiting
        merged: dict[tuple[str, tuple[str, ...]], Claim] = {}
        for own in self._claims:
            key = (own.call, own.setup)
            known = merged.get(key)
            values = (known.values if known else ()) + tuple(own.values)
            merged[key] = Claim(
                call=own.call,
                setup=own.setup,
                values=tuple(dict.fromkeys(values)),
                must_not_fail=own.must_not_fail or (known is not None and known.must_not_fail),
            )
        return tuple(merged.values())

    # Tokens

    def _on_call(self, token: Token) -> None:
        if self._is_made_value(token):
            self._on_value(replace(token, kind="value"))
            return
        preposition = self._after[-1:] and self._after[-1].lower() in PREPOSED and len(self._after) <= 3
        self._elsewhere = self._for_long = False
        self._asserting = self._after[-1:] == ["assert"]
        opened = _OpenClaim(call=token.text, setup=token.setup, sentence=self._sentence)
        if self._before.values:
            opened.values, self._before.values = self._before.values, []
            opened.preposed = True
        elif preposition and self._last is not None:
            self._move_last(self._last, opened)
        self._claims.append(opened)
        self._is_what = (
            bool(opened.values) and not opened.values[-1].role and self._after[-2:] == ["is", "what"]
        )
        if opened.values:
            self._last = opened
        self._after = []
        if self._pending and not self._modal and not self._section:
            self._pending, self._held = "", False

    def _is_made_value(self, token: Token) -> bool:
        """Whether the call is how a value is written, right behind a cue for one: "gives `Stack(1)`, should give `Stack(2)`"."""
        own = self._claims[-1] if self._claims else None
        if not self._pending or self._gap or token.setup or own is None or own.sentence != self._sentence:
            return False
        if ".py" not in self._language.suffixes:  # there, values are compared by what stands in the words
            return False
        name = next(iter(self._language.called(token.text)), "")
        return name.rpartition(".")[2][:1].isupper() or name in self._language.called(own.call)[:1]

    def _move_last(self, earlier: _OpenClaim, opened: _OpenClaim) -> None:
        """Move a value to the call that follows it ("3 for f(10) and 5 for f(20)"), or drop it where that is not clear."""
        if earlier.sentence != self._sentence or (earlier.call, earlier.setup) == (opened.call, opened.setup):
            return
        value = earlier.values.pop()
        if earlier.preposed:
            opened.values, opened.preposed = [value], True
        self._last = None

    def _on_value(self, token: Token) -> None:
        role: Role = self._pending
        number = token.text.lstrip("-")[:1].isdigit()
        if role and number and CONTAINERS & set(self._gap):
            self._reset_to_role(self._section)
            return
        if token.asserted or (self._asserting and role == "got"):
            role = "asserted"
        last = self._last_value()
        if not role and last is not None and last.role == "wanted" and self._after in (["and"], ["or"]):
            self._set_last("")  # "should be 4 and 6": nothing says which is whose
        self._value_end = token.end
        value = StatedValue(text=token.text, kind=token.value, role=role, part=self._part if role else "")
        self._bind_value(value)

    def _bind_value(self, value: StatedValue) -> None:
        if self._claims and (
            self._elsewhere
            or (OTHER_CASE.match(self._text, self._value_end) is not None and value.role == "wanted")
        ):
            self._last = None
        else:
            self._last = self._claims[-1] if self._claims else self._before
            self._last.values.append(value)
        self._pending, self._modal, self._held, self._gap, self._after = "", "", False, [], []
        self._asserting = False

    def _last_value(self) -> StatedValue | None:
        return None if self._last is None else self._last.values[-1]

    def _set_last(self, role: Role) -> None:
        assert self._last is not None
        self._last.values[-1] = replace(self._last.values[-1], role=role)

    def _on_cue(self, token: Token) -> None:
        words = self._text[token.at : token.end].lower() if token.end > token.at else ""
        self._gap, self._cued = [], words not in MODALS
        last = self._last_value()
        follows = last is not None and not [word for word in self._after if word not in BETWEEN]
        kind = token.text
        if self._is_what and kind in {"want", "got"} and last is not None:
            self._set_last("wanted" if kind == "want" else "got")
            self._is_what, self._pending, self._modal = False, "", ""
        elif kind in {"want", "got", "strong_got"}:
            self._on_role(kind, words, last, follows=follows)
        elif kind == "contrast":
            self._apply_contrast(words, last)
        elif kind in {"end", "start"}:
            self._part = "end" if kind == "end" else "start"
            if not self._modal and not self._held and not (self._pending and self._section):
                self._pending = "got"
        else:
            self._on_turn(kind, token)
        self._after.append(words or kind)

    def _on_turn(self, kind: str, token: Token) -> None:
        """A cue that says how what follows is meant."""
        if kind == "but":
            self._pending, self._modal, self._held, self._part = self._section, "", False, ""
        elif kind == "refuse":
            self._pending = self._modal = "got"
            self._note_not_failing(token)
        elif kind == "asked":
            self._pending = self._modal = "wanted"
        else:  # does not return
            self._pending, self._held = ("got" if self._modal == "wanted" else "wanted"), True

    def _on_role(self, kind: str, words: str, last: StatedValue | None, *, follows: bool) -> None:
        """A cue that gives a role."""
        if kind == "got":
            self._on_verb(words, last, follows=follows)
        elif kind == "strong_got":
            if not (self._after[-1:] == ["have"] or (self._modal == "wanted" and words == "get")):
                self._pending, self._modal, self._held = "got", "", False
        elif follows and last is not None and last.role in {"", "asserted"} and words != "should":
            self._set_last("wanted")
            self._pending, self._modal = "", ""
        else:
            self._pending = self._modal = "wanted"
            self._held, self._part = False, ""

    def _on_verb(self, words: str, last: StatedValue | None, *, follows: bool) -> None:
        postfix = words in POSTFIX
        if follows and postfix and last is not None and last.role == "" and self._after:
            self._set_last("got")
            self._pending = ""
        elif self._held:
            pass
        elif self._modal:
            self._pending = self._modal
        else:
            self._pending = "got"

    def _apply_contrast(self, words: str, last: StatedValue | None) -> None:
        if last is not None and last.role in OPPOSITE:
            self._pending, self._held = OPPOSITE[last.role], True
            self._part = last.part
        elif last is None and not words.endswith("not") and not self._after:
            self._pending, self._held = "wanted", True
        elif last is None and self._modal == "wanted":
            self._pending = self._modal = "got"
        else:
            self._pending, self._held = "", False
        if last is not None:
            self._modal = ""

    def _note_not_failing(self, token: Token) -> None:
        following = self._text[token.end : token.end + 40].lower().split()
        if (
            following[:1]
            and following[0].strip(".,;:!") in {"raise", "crash", "fail", "throw", "error", "blow"}
            and self._claims
        ):
            self._claims[-1].must_not_fail = True

    def _on_word(self, token: Token) -> None:
        lowered = token.text.lower()
        if self._claims and self._is_about_else(token, lowered):
            self._elsewhere = True
            self._for_long = self._for_long or lowered not in PLACES
        self._after.append(lowered)
        if lowered in MEASURES and HAVING & set(self._after[-3:]) and self._claims:
            self._elsewhere = True
        if not self._pending:
            return
        if lowered in FILLERS or token.text.startswith("`"):
            self._gap.append(lowered)
            if len(self._gap) > MAX_GAP:
                self._pending = ""
            return
        is_code = self._text[token.at : token.at + 1] == "`"
        if (
            self._cued
            and not is_code
            and lowered not in PREPOSED | NO_VALUES
            and self._take_bare_value(token)
        ):
            return
        self._pending, self._held = "", False

    def _is_about_else(self, token: Token, lowered: str) -> bool:
        """Whether the word begins a case of its own ("if it is empty, it should give 4"), or names other code."""
        if lowered in CONDITIONS:
            follows_value = self._last is not None and not {",", "but", ";"} & set(self._after)
            return not follows_value and WHEN_IT_SHOULD.match(self._text, token.at) is None
        call = self._claims[-1].call
        shown = self._text[token.at : token.end].strip("`")
        if not IDENTIFIER.fullmatch(shown) or re.search(rf"(?<![\w$]){re.escape(shown)}(?![\w$])", call):
            return False
        is_code = self._text.startswith("`", token.at) or "_" in shown.strip("_")
        return is_code or self._usable(f"{shown}()", ())

    def _take_bare_value(self, token: Token) -> bool:
        """Take the words from here on, up to the end of their phrase, as a value without quotes."""
        found = BARE_END.search(self._text, token.at + 1)
        end = found.start() if found else len(self._text)
        text = self._text[token.at : end].strip()
        if (
            token.end <= token.at
            or not text
            or len(text) > 80
            or self._text[token.at : token.end] != token.text
        ):
            return False
        cue = CUE.search(text)
        if cue is not None and cue.start() > 0 and cue.lastgroup in {"want", "but", "contrast", "strong_got"}:
            text, end = text[: cue.start()].strip(), token.at + cue.start()
        modal, section = self._modal, self._section
        self._value_end = end
        self._bind_value(StatedValue(text=text, kind="bare", role=self._pending, part=self._part))
        self._skip_to = end
        self._modal = modal if modal and not section else ""
        return True

    def _on_comma(self, token: Token) -> None:
        if token.text != ":":
            self._after.append(token.text)

    def _on_clause(self, token: Token) -> None:
        del token
        self._reset_to_role(self._section)
        self._after.append(";")

    def _on_line(self, token: Token) -> None:
        del token
        self._after.append("\n")

    def _on_stop(self, token: Token) -> None:
        before = self._text[: token.at].rstrip()[-1:]
        if token.text == "\n" and before == ":" and self._pending:
            return
        self._end_sentence()

    def _on_section(self, token: Token) -> None:
        roles: dict[str, Role] = {"want": "wanted", "got": "got"}
        self._section = roles.get(token.text, "")
        self._for_long = False
        self._end_sentence()

    def _end_sentence(self) -> None:
        self._sentence += 1
        self._waiting += self._before.values
        self._before.values = []
        self._last = None
        self._reset_to_role(self._section)

    def _reset_to_role(self, role: Role) -> None:
        self._pending = self._modal = role
        self._held, self._cued, self._part = False, False, ""
        self._elsewhere = self._for_long
        self._gap, self._after = [], []


def documented_claims(doc: str) -> tuple[Claim, ...]:
    """One claim for each example of the documentation whose expected output is a plain value or an exception.

    What is abbreviated (`...`), depends on options of doctest, or is no value of its own is left out.
    """
    import doctest  # takes long, and few tasks need it

    try:
        examples = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return ()
    claims = []
    setup: list[str] = []
    for example in examples[:MAX_EXAMPLES]:
        source, want = example.source.strip(), example.want.strip()
        free = PYTHON.free_names(source)
        if want and free is not None and PYTHON.has_call(source) and not example.options:
            needed = needed_setup(setup, free, PYTHON)
            value = None
            if example.exc_msg is not None:
                name = example.exc_msg.partition(":")[0].strip().rpartition(".")[2]
                value = StatedValue(text=name, kind="error", role="wanted")
            elif "..." not in want and PYTHON.is_value(want):
                value = StatedValue(text=want, role="wanted")
            if value is not None:
                claims.append(Claim(call=source, setup=needed, values=(value,)))
        if example.exc_msg is None:
            setup.append(source)
    return tuple(claims)


def script_claims(doc: str) -> tuple[Claim, ...]:
    """One claim for each line of the documentation's `@example`s whose value stands in a comment behind it, or below."""
    claims: list[Claim] = []
    for example in re.split(r"^\s*@example\b", doc, flags=re.MULTILINE)[1:]:
        setup: list[str] = []
        for line in re.split(r"^\s*@\w", example, maxsplit=1, flags=re.MULTILINE)[0].splitlines():
            found = SCRIPT_LINE.fullmatch(line.strip())
            code = (found["code"] if found else line.strip().rstrip(";")) or ""
            if code:
                setup.append(logged[1] if (logged := LOGGED.fullmatch(code)) else code)
            if (
                found is None
                or not setup
                or not SCRIPT.has_call(setup[-1])
                or not SCRIPT.is_value(found["value"])
            ):
                continue
            free = SCRIPT.free_names(setup[-1]) or frozenset()
            value = StatedValue(text=found["value"], role="wanted")
            claims.append(
                Claim(call=setup[-1], setup=needed_setup(setup[:-1], free, SCRIPT), values=(value,))
            )
    return tuple(claims[:MAX_EXAMPLES])
