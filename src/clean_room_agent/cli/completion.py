"""`cra completion`: print or install the shell's completion script."""

import click

from clean_room_agent.cli import output
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.folders import user_folder

PLACES = {
    "bash": ("XDG_DATA_HOME", ".local/share", "bash-completion/completions/cra"),
    "zsh": ("XDG_DATA_HOME", ".local/share", "zsh/site-functions/_cra"),
    "fish": ("XDG_CONFIG_HOME", ".config", "fish/completions/cra.fish"),
}
"""The variable that names the folder, the default folder below home, and the file in it."""
NEXT = {
    "bash": "every new bash reads it if the package bash-completion is installed; otherwise add to ~/.bashrc: . {path}",
    "zsh": "add to ~/.zshrc, before compinit: fpath=({folder} $fpath)",
    "fish": "every new fish reads it",
}


HELP = """Print the completion script for SHELL, or install it.

Without --install, put one of these into the shell's start-up file:

\b
  bash   eval "$(cra completion bash)"
  zsh    eval "$(cra completion zsh)"       after compinit
  fish   cra completion fish | source

It completes commands, flags and their values, and the ids of runs (with their tasks) from the repository's record.
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(list(PLACES)))
@click.option(
    "--install", is_flag=True, help="Write it where the shell looks for it, and say what else to do."
)
def command(shell: str, install: bool) -> int:
    """Print or install the script."""
    from clean_room_agent.cli.completing import script_of

    script = script_of(shell)
    if not install:
        click.echo(script, nl=False)
        return 0
    variable, below_home, name = PLACES[shell]
    path = user_folder(variable, below_home) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, script)
    output.answer(str(path))
    output.aside(NEXT[shell].format(path=path, folder=path.parent))
    return 0
