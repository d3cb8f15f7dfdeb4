"""`tidegate demo`: the same subscriptions in one process, in a network of brokers, and on Spark."""

from tidegate.cli.demo.command import demo

__all__ = ["demo"]
