"""`tidegate demo`: the parts of the demo, one after the other."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from tidegate.cli.demo.minute import show_minute


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Seed of the market."
)
@click.option(
    "--events",
    type=click.IntRange(min=300, max=1_000_000),
    default=30_000,
    show_default=True,
    help="Quotes in the network and the pipeline.",
)
@click.option(
    "--no-spark", is_flag=True, help="Leave out the pipeline, and the comparison with it."
)
@click.option("--no-network", is_flag=True, help="Show only the part in this process.")
@click.pass_context
def demo(context: click.Context, seed: int, events: int, no_spark: bool, no_network: bool) -> None:
    """Show static, parametric and evolving filters.

    First on a minute of quotes in this process; then on three minutes of a market in a network of
    three brokers, and on the same quotes in a pipeline on Spark. At the end it compares what both
    have delivered, and exits with 1 if that differs.
    """
    show_minute(seed)
    if no_network:
        return
    # Imported only here: the network is an extra, and Spark takes seconds.
    from tidegate.cli.demo.market import Market
    from tidegate.cli.demo.network_run import run_network
    from tidegate.cli.demo.network_run import show as show_network

    with (
        _ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="tidegate-demo-") as folder,
        run_network(Market(events, seed), Path(folder)) as run,
    ):
        show_network(run)
        if no_spark:
            return
        from tidegate.cli.demo.comparison import show_comparison
        from tidegate.cli.demo.spark_run import run_pipeline

        pipeline = run_pipeline(run, Path(folder))
        if not show_comparison(run, pipeline):
            context.exit(1)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the command wherever it is, so that it ends its processes.

    With Python's own handler of Ctrl-C, asyncio would cancel its main task instead, and go on if
    something catches that.
    """

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signals.append(signal.SIGINT)
    before = {each: signal.signal(each, end) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
