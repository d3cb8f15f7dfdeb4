"""The commands of `tidegate`, listed in sections and imported when they are called.

Spark, Numba and Matplotlib take seconds to import, and most commands need none of them. So `--help`
imports no command: what it says of each stands here too, and a test compares it with the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click

from tidegate.language.nearest_names import nearest_name


class Listed(NamedTuple):
    """A command: its module, which has a command of the same name, and what `--help` says of it."""

    module: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Listed]] = {
    "Filters": {
        "check": Listed("cli.check", "Check a filter and show its shape."),
        "explain": Listed("cli.explain", "Explain why an event matches a subscription or not."),
    },
    "Files": {
        "match": Listed("cli.match", "Find all matches of the events of a file."),
        "backtest": Listed(
            "cli.backtest", "Count the deliveries that changed subscriptions would make."
        ),
    },
    "Spark": {
        "pipeline": Listed("cli.pipeline", "Match a stream of events on Spark."),
    },
    "Overlays in a simulated world": {
        "simulate": Listed("cli.simulate", "Run brokers and clients in a simulated world."),
        "topology": Listed("cli.topology", "Show, draw or write an overlay of brokers."),
    },
    "Network": {
        "broker": Listed("cli.network.broker", "Run a broker."),
        "pub": Listed("cli.network.pub", "Publish events."),
        "sub": Listed("cli.network.sub", "Print the events that match a filter."),
        "update": Listed("cli.network.update", "Change parameters of a durable subscription."),
        "advertise": Listed(
            "cli.network.advertise", "Announce the events that a durable client will publish."
        ),
        "top": Listed(
            "cli.network.top", "Show what a broker does: rates, queues, links, slow consumers."
        ),
        "trace": Listed(
            "cli.network.trace", "Show the way of an event through the network from a broker on."
        ),
    },
    "See and measure": {
        "demo": Listed("cli.demo", "Show static, parametric and evolving filters."),
        "bench": Listed("cli.bench", "Measure speed on this machine."),
        "warm": Listed("cli.warm", "Compile the kernels of matchers and keep them on disk."),
    },
}
COMMANDS = {name: listed for section in SECTIONS.values() for name, listed in section.items()}


class CommandGroup(click.Group):
    """The commands in their sections; of a mistyped name it says which one is nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"tidegate.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the sections, without importing a command."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                rows = [(name.ljust(width), listed.help) for name, listed in commands.items()]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument; raises UsageError with the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            nearest = nearest_name(args[0], tuple(COMMANDS))
            meant = "" if nearest is None else f" (did you mean {nearest!r}?)"
            ctx.fail(f"there is no command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)
