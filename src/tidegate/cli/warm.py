"""`tidegate warm`: compile the kernels of the matchers before somebody waits for them."""

from __future__ import annotations

import json
import os
from time import perf_counter

import click

MATCHERS = ("columnar", "tree")


@click.command()
@click.option(
    "--matcher",
    "chosen",
    type=click.Choice(MATCHERS),
    multiple=True,
    default=MATCHERS[:1],
    show_default=True,
    help="Matcher to compile; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def warm(chosen: tuple[str, ...], as_json: bool) -> None:
    """Compile the kernels of matchers and keep them on disk.

    They are compiled when they are first needed, which takes some seconds; so run this where that
    should not happen, such as when an image is built. They are kept beside the installed files, or
    in the folder that NUMBA_CACHE_DIR names.
    """
    from tidegate.cli.status import print_status
    from tidegate.experiments import warming

    started = perf_counter()
    with warming.counted_compilations() as warmed:
        for matcher in dict.fromkeys(chosen):
            for step in warming.warm(matcher):
                print_status(step)
    seconds = perf_counter() - started
    place = os.environ.get("NUMBA_CACHE_DIR") or "beside the installed files"
    if as_json:
        row = {"compiled": warmed.compiled, "seconds": round(seconds, 1), "place": place}
        click.echo(json.dumps(row))
    elif warmed.compiled:
        click.echo(f"compiled {warmed.compiled} functions in {seconds:.0f} s, kept {place}")
    else:
        click.echo("all kernels were compiled already")
