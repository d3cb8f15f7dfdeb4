"""Metrics of a pipeline, which Prometheus can read over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from tidegate.errors import ConnectorError
from tidegate.spark.streaming.micro_batch import BatchReport

_COUNTS = {
    "events": "Events received",
    "changes": "Changes of subscriptions received",
    "matches": "Deliveries written",
    "late": "Events and changes that came too late",
    "bad": "Records that could not be read and changes that could not be applied",
    "corrected": "Subscriptions whose past versions were corrected by a late change",
}
"""The fields of a `BatchReport` that are counters, with their help texts."""


class Metrics:
    """Adds up the reports of micro-batches."""

    def __init__(self) -> None:
        # Not the global registry, so that two pipelines in one process are counted apart.
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"tidegate_{name}", help_text, registry=self.registry)
            for name, help_text in _COUNTS.items()
        }
        self._batches = Histogram(
            "tidegate_batch_seconds", "Duration of micro-batches", registry=self.registry
        )
        self._lag = Gauge("tidegate_lag_seconds", "Age of the latest event", registry=self.registry)
        self._subscriptions = Gauge(
            "tidegate_subscriptions", "Current number of subscriptions", registry=self.registry
        )

    def add(self, report: BatchReport) -> None:
        """Add the report of a micro-batch."""
        for name, counter in self._counters.items():
            counter.inc(getattr(report, name))
        self._batches.observe(report.seconds)
        self._subscriptions.set(report.subscriptions)
        # Without an event so far there is no lag. It is measured by the clock of this machine.
        if report.latest is not None:
            self._lag.set((datetime.now(UTC) - report.latest).total_seconds())

    def serve(self, port: int, address: str) -> int:
        """Serve the metrics over HTTP; returns the port, which the system chooses if it is 0."""
        try:
            server, _ = start_http_server(port, address, self.registry)
        except (OSError, OverflowError) as error:  # OverflowError: the port is out of range
            reason = getattr(error, "strerror", None) or error
            raise ConnectorError(
                f"the metrics cannot be served at {address}:{port}: {reason}"
            ) from None
        return int(server.server_port)
