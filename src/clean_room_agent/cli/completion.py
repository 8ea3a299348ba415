"""`cra completion`: the shell's completion script."""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script for SHELL; put `eval "$(cra completion bash)"` into its start-up file."""
    from click.shell_completion import ShellComplete, get_completion_class

    from clean_room_agent.cli.main import cra

    kind = get_completion_class(shell)
    assert kind is not None
    # click's own `source` of bash runs the first bash on PATH to ask its version, wherever that leads.
    click.echo(ShellComplete.source(kind(cra, {}, "cra", "_CRA_COMPLETE")))
