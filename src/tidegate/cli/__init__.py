"""The command line: `tidegate COMMAND`, one module for each command."""

from __future__ import annotations

import sys

import click

import tidegate
from tidegate.cli.bench import bench
from tidegate.cli.check import check
from tidegate.cli.demo import demo
from tidegate.cli.explain import explain
from tidegate.cli.match import match
from tidegate.errors import TidegateError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tidegate.__version__, message="tidegate %(version)s")
def cli() -> None:
    """Content-based publish/subscribe whose subscriptions move.

    Exit codes: 0 all is well, 1 the answer is no or something went wrong on the way, 2 the command
    or its input is wrong.
    """


for command in (bench, check, demo, explain, match):
    cli.add_command(command)


def main() -> None:
    """Run the command line; an error that the user caused is told in a few lines, exit code 2."""
    try:
        cli()
    except TidegateError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
