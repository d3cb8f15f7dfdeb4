"""How a pipeline goes, for Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from tidegate.errors import ConnectorError
from tidegate.spark.streaming.stream import BatchReport

_COUNTS = {
    "events": "Events taken",
    "changes": "Changes of subscriptions taken",
    "matches": "Deliveries written",
    "late": "Events and changes that came too late",
    "bad": "Records that could not be read and changes that could not be made",
    "corrected": "Subscriptions that a late change made others for events matched before",
}


class Metrics:
    """Counts what micro-batches report."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"tidegate_{name}", what, registry=self.registry)
            for name, what in _COUNTS.items()
        }
        self._batches = Histogram(
            "tidegate_batch_seconds", "How long micro-batches took", registry=self.registry
        )
        self._lag = Gauge(
            "tidegate_lag_seconds", "How old the latest event is", registry=self.registry
        )
        self._subscriptions = Gauge(
            "tidegate_subscriptions", "Subscriptions there are", registry=self.registry
        )

    def add(self, report: BatchReport) -> None:
        """Count a micro-batch."""
        for name, counter in self._counters.items():
            counter.inc(getattr(report, name))
        self._batches.observe(report.seconds)
        self._subscriptions.set(report.subscriptions)
        if report.latest is not None:
            self._lag.set((datetime.now(UTC) - report.latest).total_seconds())

    def serve(self, port: int, address: str) -> int:
        """Let Prometheus read them at an address; gives the port, which 0 leaves to the system."""
        try:
            server, _ = start_http_server(port, address, self.registry)
        except (OSError, OverflowError) as error:  # the latter of a port that there is not
            reason = getattr(error, "strerror", None) or error
            raise ConnectorError(
                f"the metrics cannot be had at {address}:{port}: {reason}"
            ) from None
        return int(server.server_port)
