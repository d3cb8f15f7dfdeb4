"""The command line: `tidegate COMMAND`, one module for each command."""

from __future__ import annotations

import sys
from importlib import import_module

import click

import tidegate
from tidegate.errors import TidegateError

# Written by hand instead of found in the folder, because listing must not import: the module of a
# command has the name of the command.
COMMANDS = (
    "backtest",
    "bench",
    "broker",
    "check",
    "demo",
    "explain",
    "match",
    "pipeline",
    "simulate",
    "topology",
)

NETWORK_COMMANDS = ("broker",)
"""Those whose modules are in the folder `network/`."""


class CommandGroup(click.Group):
    """Imports the module of a command only when the command is called.

    Spark, Numba and Matplotlib take seconds to import, and most commands need none of them.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        folder = "tidegate.cli.network" if cmd_name in NETWORK_COMMANDS else "tidegate.cli"
        command: click.Command = getattr(import_module(f"{folder}.{cmd_name}"), cmd_name)
        return command


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tidegate.__version__, message="tidegate %(version)s")
def cli() -> None:
    """Content-based publish/subscribe whose subscriptions move.

    Exit codes: 0 success, 1 the answer is no or the command failed, 2 the command line or a file is
    wrong.
    """


def main() -> None:
    """Run the command line.

    A TidegateError is caused by the user: it is printed without a traceback, with exit code 2, like
    click's own usage errors. Other exceptions are bugs and keep their traceback.
    """
    try:
        cli()
    except TidegateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
