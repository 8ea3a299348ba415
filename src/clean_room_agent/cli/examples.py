"""The examples in each command's help. A test parses every one of them."""

from collections.abc import Mapping

Examples = tuple[tuple[str, str], ...]

EXAMPLES: Mapping[str, Examples] = {
    "init": (
        ("cra init", "asks for what it does not find"),
        ("cra init --yes --coding qwen2.5-coder:7b --reasoning qwen3:8b", "no questions"),
    ),
    "check": (
        ("cra check", "is everything here to work?"),
        ("cra check --tests", "run and time the tests once, as a run would"),
        ("cra check --sandbox", "try to get out of the sandbox"),
    ),
    "config": (("cra config", "every value, and where it is from"),),
    "config list": (("cra config list --sources", "the same, for a script with --json"),),
    "config get": (
        ("cra config get models.coding", "one value"),
        ("cra config get budget", "those of a table"),
    ),
    "config set": (
        ("cra config set models.coding qwen2.5-coder:7b", "here"),
        ("cra config set --user models.base_url http://127.0.0.1:8080", "in all repositories"),
    ),
    "config unset": (("cra config unset models.coding", "what is below counts again"),),
    "models": (("cra models", "what the server has, and who does which job"),),
    "index": (("cra index", "what changed since"), ("cra index --full ../other", "another repository, anew")),
    "enrich": (("cra enrich --limit 50 --promote", "the 50 files that others import most, into the index"),),
    "retrieve": (
        ("cra retrieve 'Splitting a bill loses cents' --no-model", "needs no model server"),
        ("cra retrieve --issue issue.md --format prompt", "for another tool to read"),
    ),
    "plan": (
        ("cra plan 'Splitting a bill loses cents' -o plan.json", "then: cra solve --plan plan.json"),
        ("cra plan --plan plan.toml --edit", "review a plan in your editor"),
    ),
    "solve": (
        ("cra solve 'Splitting a bill loses cents: the shares must add up'", "a branch whose tests pass"),
        (
            "cra solve --issue issue.md --samples 4 --apply",
            "a long task; 4 answers an attempt; into your tree",
        ),
        ("cra solve --plan plan.json", "follow a reviewed plan"),
        ("cra solve --resume @ --hint 'round half up'", "go on with the newest run"),
    ),
    "batch": (
        ("cra batch tasks.jsonl --jobs 2", "a line of JSON each; goes on where it was ended"),
        ("cra batch tasks.jsonl --retry --json", "those that failed, too; a line a task"),
    ),
    "apply": (
        ("cra apply", "the newest run's result"),
        ("cra apply @~1 --undo", "take that of the run before out again"),
    ),
    "discard": (("cra discard", "branch and snapshot of the newest run; its record stays"),),
    "runs": (("cra runs", "the newest 20"), ("cra runs --limit 100 --json", "for a program")),
    "show": (
        ("cra show", "the newest run at a glance"),
        ("cra show @ --why src/money.py:12", "who wrote this line of the result, from what"),
        ("cra show @/part/step --prompt --response", "what the model read and said at one step"),
    ),
    "report": (
        ("cra report --open", "the newest run as a page in your browser"),
        ("cra report --all -o runs.html", "all runs"),
    ),
    "replay": (
        ("cra replay", "the newest run again: the same bytes"),
        ("cra replay @ --stage scope --model qwen3:8b", "what another model would have said"),
    ),
    "prune": (
        ("cra prune", "what takes room; nothing is taken away"),
        ("cra prune --older-than 30d --yes", "all of ended runs that are older"),
    ),
    "stats": (
        ("cra stats", "costs, and how right the answers were"),
        ("cra stats --counterfactual", "what a perfect stage would win"),
    ),
    "train-plan": (("cra train-plan -o training.json", "the adapter that would win the most tasks"),),
    "curate-data": (("cra curate-data --plan 1 -o data", "a dataset for the first plan"),),
    "bootstrap": (("cra bootstrap ../click ../flask -o data --jobs 4", "pairs from two histories"),),
    "train": (("cra train 1 --base models/qwen3-4b -o adapter", "an adapter on dataset 1"),),
    "adapters": (("cra adapters list", "which there are, and which of them answer"),),
    "adapters list": (("cra adapters list", "which there are, and which of them answer"),),
    "adapters evaluate": (
        ("cra adapters evaluate 1 --also scope_batch", "against its base, on held-out questions"),
    ),
    "adapters deploy": (("cra adapters deploy 1", "have it answer for its prompt"),),
    "adapters retire": (("cra adapters retire 1", "what it replaced answers again"),),
    "mcp": (("cra mcp --repo ../till", "as an editor starts it"),),
    "demo": (
        ("cra demo", "needs no model"),
        ("cra demo --live --coding qwen2.5-coder:7b --reasoning qwen3:8b", "ask a real one"),
    ),
    "bug-report": (
        ("cra bug-report", "about the newest run; says what is in the file, sends nothing"),
        ("cra bug-report @~1 -o bug.zip", "about the run before, into a file here"),
    ),
    "completion": (("cra completion bash --install", "from the next shell on"),),
}
"""By the words after `cra`: (command line, what it is for)."""


def epilog_of(name: str) -> str:
    """The examples as click shows them below a command's options."""
    shown = [f"  {line}\n      {what}" for line, what in EXAMPLES.get(name, ())]
    return "\n".join(["\b", "Examples:", *shown]) if shown else ""
