"""`tidegate top`: what a broker does now, like top."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Any

import click

from tidegate.cli.network.admin_client import AdminClient, admin_options
from tidegate.cli.network.top_page import page, summary

_ENTER, _LEAVE, _HOME, _CLEAR_LINE, _CLEAR_REST = (
    "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H", "\x1b[K", "\x1b[J",
)  # fmt: skip


@click.command()
@admin_options
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=2.0, show_default=True,
              metavar="SECONDS", help="Time over which rates are measured.")  # fmt: skip
@click.option("--once", is_flag=True, help="Print one page after one interval, and end.")
@click.option("--json", "as_json", is_flag=True,
              help="Print a JSON object for each interval instead of a page.")  # fmt: skip
def top(interval: float, once: bool, as_json: bool, **admin: Any) -> None:
    """Show what a broker does: rates, queues, links, slow consumers.

    Clients with the most deliveries waiting come first. Ends with Ctrl-C.

    \b
    Examples:
      tidegate top --token-file ./a/admin-token
      tidegate top --broker http://127.0.0.1:7081 --once --json
    """
    client = AdminClient(**admin)
    before = client.get("/state")
    on_screen = not once and not as_json and sys.stdout.isatty()
    if on_screen:
        click.echo(_ENTER, nl=False)
    try:
        while True:
            time.sleep(interval)
            after = client.get("/state")
            if as_json:
                click.echo(json.dumps(summary(before, after), ensure_ascii=False))
            elif on_screen:
                size = shutil.get_terminal_size()
                lines = page(before, after, size.columns, size.lines)
                shown = "\n".join(line + _CLEAR_LINE for line in lines)
                click.echo(f"{_HOME}{shown}{_CLEAR_REST}", nl=False)
            else:
                width = shutil.get_terminal_size().columns
                click.echo("\n".join(page(before, after, width)))
            sys.stdout.flush()
            if once:
                return
            before = after
    finally:
        if on_screen:
            click.echo(_LEAVE, nl=False)
