"""The examples in each command's help. A test parses every one of them."""

from collections.abc import Mapping

Examples = tuple[tuple[str, str], ...]

EXAMPLES: Mapping[str, Examples] = {
    "init": (
        ("cra init", "asks for what it cannot detect"),
        ("cra init --yes --coding qwen2.5-coder:7b --reasoning qwen3:8b", "no questions"),
    ),
    "check": (
        ("cra check", "does everything work?"),
        ("cra check --tests", "run and time the tests once, as a run would"),
        ("cra check --sandbox", "try to escape from the sandbox"),
    ),
    "config": (("cra config", "every value, and where it comes from"),),
    "config get": (
        ("cra config get models.coding", "one value"),
        ("cra config get budget", "all values of a table"),
    ),
    "config set": (
        ("cra config set models.coding qwen2.5-coder:7b", "here"),
        ("cra config set --user models.base_url http://127.0.0.1:8080", "in all repositories"),
    ),
    "config unset": (("cra config unset models.coding", "use your own file's value, or the default"),),
    "models": (("cra models", "the models on the server, and which one does what"),),
    "models fit": (("cra models fit", "measure them once; runs are then asked what suits them"),),
    "index": (
        ("cra index", "only what changed"),
        ("cra index --full ../other", "another repository, from scratch"),
    ),
    "enrich": (("cra enrich --limit 50 --promote", "the 50 files that others import most, into the index"),),
    "retrieve": (
        ("cra retrieve 'Splitting a bill loses cents' --no-model", "needs no model server"),
        ("cra retrieve --issue issue.md --format prompt", "for another tool to read"),
    ),
    "plan": (
        ("cra plan 'Splitting a bill loses cents' -o plan.json", "then: cra solve --plan plan.json"),
        ("cra plan 'Splitting a bill loses cents' -o plan.toml", "its steps, to edit"),
    ),
    "solve": (
        ("cra solve 'Splitting a bill loses cents: the shares must add up'", "a branch whose tests pass"),
        ("cra solve --issue issue.md --samples 4 --apply", "a long task; 4 answers an attempt; apply it"),
        (
            "cra solve 'The shares must add up' --check 'assert sum(split(100, 3)) == 100' --file till/money.py",
            "what shows that it is done, and where it is",
        ),
        ("cra solve --plan plan.json", "follow a reviewed plan"),
        ("cra solve --resume @ --hint 'round half up'", "continue the newest run"),
    ),
    "batch": (
        ("cra batch tasks.jsonl --jobs 2", "tasks as JSON Lines; run again to continue"),
        ("cra batch tasks.jsonl --retry --json", "also failed ones; a line per task"),
    ),
    "apply": (
        ("cra apply", "the newest run's result"),
        ("cra apply @~1 --undo", "undo that of the run before"),
    ),
    "discard": (("cra discard", "branch and snapshot of the newest run; its record stays"),),
    "runs": (("cra runs", "the newest 20"), ("cra runs --limit 100 --json", "for a program")),
    "show": (
        ("cra show", "the newest run at a glance"),
        ("cra show @ --why src/money.py:12", "which call wrote this line, and from what"),
        ("cra show @/part/step --prompt --response", "the prompts and answers of one step"),
    ),
    "report": (("cra report --open", "the newest run as a page in your browser"),),
    "replay": (
        ("cra replay", "the newest run again: the same bytes"),
        ("cra replay @ --stage scope --model qwen3:8b", "what another model would have answered"),
    ),
    "prune": (
        ("cra prune", "what dead processes left; deletes nothing"),
        ("cra prune --older-than 30d --yes", "everything of older runs that have ended"),
    ),
    "stats": (
        ("cra stats", "costs, and how right the answers were"),
        ("cra stats --counterfactual", "what a perfect stage would gain"),
    ),
    "tonight": (
        ("cra tonight --base coder-0.5b.gguf", "this repository, at most 8 hours of training"),
        (
            "cra tonight ../shop ../till --base coder-0.5b.gguf --hours 2",
            "two others; begun again, it continues",
        ),
    ),
    "train-plan": (("cra train-plan -o training.json", "the adapter that would help most"),),
    "curate-data": (("cra curate-data --plan 1 -o data", "a dataset for the first plan"),),
    "bootstrap": (
        ("cra bootstrap ../click ../flask -o data --jobs 4", "pairs from two histories"),
        ("cra bootstrap ../click --faults 200 -o data", "pairs from planted faults"),
    ),
    "train": (("cra train 1 --base models/qwen3-4b -o adapter", "an adapter on dataset 1"),),
    "adapters": (("cra adapters list", "all adapters, and which of them are in use"),),
    "adapters list": (("cra adapters list", "all adapters, and which of them are in use"),),
    "adapters evaluate": (
        ("cra adapters evaluate 1 --also scope_batch", "against its base, on held-out questions"),
    ),
    "adapters deploy": (("cra adapters deploy 1", "use it for its prompt"),),
    "adapters retire": (("cra adapters retire 1", "what it replaced is used again"),),
    "mcp": (("cra mcp --repo ../till", "as an editor starts it"),),
    "demo": (
        ("cra demo", "needs no model"),
        ("cra demo --live --coding qwen2.5-coder:7b --reasoning qwen3:8b", "ask a real model"),
    ),
    "bug-report": (
        ("cra bug-report", "about the newest run; sends nothing"),
        ("cra bug-report @~1 -o bug.json", "about the run before, into a file here"),
    ),
    "completion": (("cra completion bash --install", "from the next shell on"),),
}
"""By the words after `cra`: (command line, what it is for)."""


def epilog_of(name: str) -> str:
    """The examples as click shows them below a command's options."""
    shown = [f"  {line}\n      {what}" for line, what in EXAMPLES.get(name, ())]
    return "\n".join(["\b", "Examples:", *shown]) if shown else ""
