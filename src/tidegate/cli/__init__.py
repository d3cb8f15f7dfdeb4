"""The command line: `tidegate COMMAND`, one module for each command."""

from __future__ import annotations

import errno
import os
import sys

import click

import tidegate
from tidegate.cli.command_group import CommandGroup
from tidegate.errors import TidegateError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tidegate.__version__, "-V", "--version", message="tidegate %(version)s")
def cli() -> None:
    """Content-based publish/subscribe whose subscriptions move.

    Exit codes: 0 success, 1 the answer is no or the command failed, 2 the command line or a file is
    wrong, 130 interrupted with Ctrl-C.
    """


def main() -> None:
    """Run the command line, and exit with its code.

    A TidegateError is caused by the user: it is printed without a traceback, with exit code 2, like
    click's own usage errors; so is a full disk, with 1. Other exceptions are bugs and keep their
    traceback.
    """
    try:
        # Not standalone: click would say "Aborted!" after Ctrl-C, and exit with 1.
        code = cli(standalone_mode=False) or 0
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = INTERRUPTED
    except TidegateError as error:
        click.echo(f"error: {error}", err=True)
        code = 2
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
        _discard_stdout()
        code = 1
    sys.exit(code)


def _discard_stdout() -> None:
    """Write to nowhere what is still in the buffer of stdout; Python flushes it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
