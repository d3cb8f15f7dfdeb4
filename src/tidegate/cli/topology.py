"""`tidegate topology`: an overlay of brokers as a summary, as a picture, or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.errors import TidegateError, TopologyError
from tidegate.simulation.drawing.loads import Loads, loads_from_json
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.json_file import FILE_BYTES_MAX, read_overlay, to_json
from tidegate.simulation.overlays.summary import summarize
from tidegate.simulation.overlays.topology import Topology


def _describe_topologies() -> str:
    lines = [
        f"  {name:<26} {generator.summary} ({generator.brokers:,})"
        for name, generator in TOPOLOGIES.items()
    ]
    return "\b\nTopologies, with their default number of brokers:\n" + "\n".join(lines)


@click.command(epilog=_describe_topologies())
@click.option("--topology", "name", metavar="NAME", help="Name of an overlay to generate.")
@click.option("--file", metavar="FILE", help="An overlay of your own, as JSON.")
@click.option("--brokers", type=int, metavar="N", help="Number of brokers to generate.")
@click.option("--seed", type=int, metavar="N", help="Seed of the overlay.  [default: 0]")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the overlay; the name ends in .svg or .png.")  # fmt: skip
@click.option("--broker", metavar="URL", envvar="TIDEGATE_ADMIN",
              help="Admin port of a broker that runs: the network that it knows.")  # fmt: skip
@click.option("--token", metavar="TOKEN", envvar="TIDEGATE_ADMIN_TOKEN",
              help="Admin token of --broker; better given as TIDEGATE_ADMIN_TOKEN.")  # fmt: skip
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="FILE", help="File with the admin token.")  # fmt: skip
@click.option("--loads", metavar="FILE", help="File of the loads to draw, of tidegate simulate.")
@click.option("--json", "as_json", is_flag=True, help="Print the overlay as --file reads it.")
def topology(
    name: str | None,
    file: str | None,
    brokers: int | None,
    seed: int | None,
    output: Path | None,
    loads: str | None,
    as_json: bool,
    broker: str | None,
    token: str | None,
    token_file: Path | None,
) -> None:
    """Show, draw or write an overlay of brokers.

    \b
    Examples:
      tidegate topology --topology transit-stub --brokers 100 --seed 3 --output overlay.svg
      tidegate topology --topology gryphon --json > overlay.json
      tidegate topology --file overlay.json --loads loads.json --output overlay.png
      tidegate topology --broker http://127.0.0.1:7080 --token-file ./a/admin-token
    """
    if name is not None or file is not None:
        broker = None  # TIDEGATE_ADMIN is for who asks for no other overlay
    _check_usage(name, file, broker, brokers, seed, output, loads)
    if broker is None:
        overlay = _overlay(name, file, brokers, seed or 0)
    else:
        overlay = _running_overlay(broker, token, token_file)
    overlay_loads = None if loads is None else _read_loads(loads, overlay)
    if as_json:
        click.echo(to_json(overlay), nl=False)
    else:
        click.echo("\n".join(summarize(overlay).lines()))
    if output is not None:
        _draw(overlay, output, overlay_loads)


def _running_overlay(broker: str, token: str | None, token_file: Path | None) -> Topology:
    """The network that a broker knows."""
    from tidegate.cli.network.admin_client import AdminClient
    from tidegate.cli.network.running_topology import overlay_of

    return overlay_of(AdminClient(broker, token, token_file, timeout=10.0).get("/state"))


def _check_usage(
    name: str | None,
    file: str | None,
    broker: str | None,
    brokers: int | None,
    seed: int | None,
    output: Path | None,
    loads: str | None,
) -> None:
    if [name, file, broker].count(None) != 2:
        raise click.UsageError("give one of --topology, --file and --broker")
    if name is None and (brokers is not None or seed is not None):
        raise click.UsageError("--brokers and --seed are for --topology; a file has its brokers")
    if loads is not None and output is None:
        raise click.UsageError("--loads needs --output: loads are drawn in the picture")
    if output is not None:
        check_picture(output, "--output")


def check_picture(output: Path, option: str) -> None:
    """Refuse a picture file that cannot be written, before the work; raises UsageError."""
    try:
        # Imported only for pictures: Matplotlib is an optional extra and takes a second to import.
        from tidegate.simulation.drawing.picture import FORMATS
    except ImportError as error:
        raise click.ClickException(f"{option} needs the extra `bench`: {error}") from error
    if output.suffix.lower() not in FORMATS:
        raise click.UsageError(
            f"{option} takes a file of {', '.join(FORMATS)}, not {output.name!r}"
        )
    if not output.parent.is_dir():
        raise click.UsageError(f"{option}: there is no folder {str(output.parent)!r}")


def _overlay(name: str | None, file: str | None, brokers: int | None, seed: int) -> Topology:
    return generate(name or "", brokers, seed) if file is None else read_overlay(file)


def _read_loads(file: str, overlay: Topology) -> Loads:
    try:
        return loads_from_json(_read(file), overlay)
    except TopologyError as error:
        raise TopologyError(f"{file}: {error}") from None


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(FILE_BYTES_MAX + 1)  # one more, so that too much is recognized
    except OSError as error:
        raise TidegateError(f"{file}: cannot be read: {error.strerror or error}") from None


def _draw(overlay: Topology, output: Path, loads: Loads | None) -> None:
    from tidegate.simulation.drawing.picture import draw_overlay

    try:
        draw_overlay(overlay, output, loads)
    except OSError as error:
        raise click.ClickException(f"{output}: cannot be written: {error.strerror}") from None
    click.echo(f"drew {output}", err=True)
