"""A page as a program reads it: its tags, headings, links and texts."""

from html.parser import HTMLParser

from msgspec import Struct, field

VOID = frozenset({"meta", "br", "input", "path", "rect", "link", "img"})


class ReadPage(Struct):
    """What stands in a page."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    pres: dict[str, str] = field(default_factory=dict)
    """Texts of `pre` with an id."""
    calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By the id of a call: (address, "") of each link and ("", text) of each `pre` in it, in order."""
    unclosed: list[str] = field(default_factory=list)
    section_names: list[str] = field(default_factory=list)
    """Texts of `h2`, by which sections are named."""
    texts: dict[str, str] = field(default_factory=dict)
    """Of `style`, `script`, `title`."""

    def attributes(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def headings(self) -> list[int]:
        """Their levels, in order."""
        return [int(tag[1]) for tag, _ in self.tags if tag in {"h1", "h2", "h3", "h4", "h5", "h6"}]

    def prompt(self, call_id: int) -> str:
        """The call's prompt."""
        return next(text for link, text in self.calls[f"call-{call_id}"] if not link)


def read_page(text: str) -> ReadPage:
    """The page, read leniently; what is not closed is told."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.page.unclosed = [tag for tag, _ in reader.open]
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = ReadPage()
        self.open: list[tuple[str, dict[str, str]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append((tag, attributes))
        if tag in {"pre", "style", "script", "title", "h2"}:
            self.text = ""
        if tag == "a":
            self._tell(attributes.get("href", ""), "")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        name, attributes = self.open.pop()
        assert name == tag, (name, tag, self.getpos())
        text = self.text.removeprefix("\n")
        if tag == "pre":
            if "id" in attributes:
                self.page.pres[attributes["id"]] = text
            self._tell("", text)
        if tag == "h2":
            self.page.section_names.append(self.text)
        if tag in {"style", "script", "title"}:
            self.page.texts.setdefault(tag, self.text)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def _tell(self, link: str, text: str) -> None:
        for tag, attributes in self.open:
            if tag == "details" and attributes.get("id", "").startswith("call-"):
                self.page.calls.setdefault(attributes["id"], []).append((link, text))
