"""`cra mcp`: offer commands as tools to editors and other agents, through the Model Context Protocol."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.package_extras import require_extras
from clean_room_agent.cli import options
from clean_room_agent.version import VERSION

HELP = """Offer `retrieve`, `plan`, `solve` and `why` to an editor or another agent, through the Model Context Protocol on standard
input and output. An editor starts this command; its configuration names the command and the repository:

\b
{"mcpServers": {"cra": {"command": "cra", "args": ["mcp", "--repo", "/path/to/repository"]}}}

Each call runs as a command of its own: cancelling it has the effect of Ctrl-C, and `resume` continues the run. Needs the extra
`mcp`.

Exit codes: 0 the client disconnected, 2 the extra is missing or this is not a repository, 130 stopped by a signal.
"""


@click.command(help=HELP)
@options.repo_option
def command(repo: Path) -> int:
    """The command."""
    require_extras("mcp")
    top = wiring.workspace_of(repo).repo
    import anyio

    from clean_room_agent.cli.mcp_server import serve

    anyio.run(serve, top, VERSION)
    return 0
