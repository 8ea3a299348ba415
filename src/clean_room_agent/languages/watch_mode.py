"""Commands that wait for changes and never end, even where the variable CI is set."""

import re
from collections.abc import Mapping

from clean_room_agent.languages.jsonc import as_text

WATCHES = re.compile(
    r"(?<![\w./-])(?:--watch(?:-?all)?(?:=true)?|nodemon|ptw|pytest-watch(?:er)?|watchexec|watchmedo|watchman-make|chokidar|entr"
    r"|(?:tsx|cargo|dotnet|vitest|gow)\s+watch|vitest\s+dev)(?![\w=.-])",
    re.IGNORECASE,
)
CALMED = re.compile(r"--(?:no-watch(?:-?all)?|watch(?:-?all)?=(?:false|0))(?![\w-])", re.IGNORECASE)
CALLED = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:-\S+\s+)*(?:run(?:-script)?\s+)?(?P<script>t(?=\s|$)|[\w:.-]+)"
)


def watching(command: str, scripts: Mapping[str, object]) -> str:
    """What waits for changes of the command and those of `scripts` (of a package.json) that it starts, as it is written there; "" if
    nothing is seen to.
    """
    if CALMED.search(command):
        return ""
    names = (found["script"] for found in CALLED.finditer(command))
    started = (as_text(scripts.get("test" if name == "t" else name)) for name in names)
    texts = (text for text in (command, *started) if not CALMED.search(text))
    return next((found[0] for text in texts if (found := WATCHES.search(text))), "")
