"""The command line: `tidegate COMMAND`, one module for each command."""

from __future__ import annotations

import sys
from importlib import import_module

import click

import tidegate
from tidegate.errors import TidegateError

COMMANDS = (
    "backtest",
    "bench",
    "check",
    "demo",
    "explain",
    "match",
    "pipeline",
    "simulate",
    "topology",
)


class CommandGroup(click.Group):
    """Loads the module of a command when it is called, so that none waits for all the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"tidegate.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tidegate.__version__, message="tidegate %(version)s")
def cli() -> None:
    """Content-based publish/subscribe whose subscriptions move.

    Exit codes: 0 all is well, 1 the answer is no or something went wrong on the way, 2 the command
    or its input is wrong.
    """


def main() -> None:
    """Run the command line; an error that the user caused is told in a few lines, exit code 2."""
    try:
        cli()
    except TidegateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
