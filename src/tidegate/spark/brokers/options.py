"""The options of `format("tidegate")` with a broker, and the connection that they describe.

==================  ================================================================================
``broker``          the URL of the broker, `tidegate://host:port`, or several, separated by commas
``identity``        by which the broker knows the stream; a source needs one, a sink has one of the
                    id of its query
``token``           what the broker asks for
``ca``, ``cert``,   files on the driver's machine, for TLS
``key``
``timeout``         seconds within which the broker must answer; 60 by default
``space``           the space of the events
==================  ================================================================================

For reading:

=====================  =============================================================================
``filter``             the events to read; all by default
``params``             the values of its parameters, as a JSON object
``maxEventsPerBatch``  the largest number of events in a micro-batch; 50,000 by default
``onMismatch``         ``error`` (the default), or ``null`` to read a value that its column cannot
                       hold as null
``failOnDataLoss``     ``true`` (the default): a query fails when the broker has lost events of it
=====================  =============================================================================

For writing a batch: ``producer`` and ``batch``, as with an event log.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.errors import ConnectorError, TidegateError
from tidegate.language.filters import parse
from tidegate.matching.json_lines import decode_line
from tidegate.spark.option_values import integer_option, mismatch_to_null

if TYPE_CHECKING:
    from tidegate.network.client.sync import SyncClient

EVENTS_PER_BATCH_MAX = 50_000
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """The options of a stream from or to a broker, checked."""

    brokers: tuple[str, ...]
    identity: str | None = None
    token: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    timeout_s: float = TIMEOUT_S
    space: str | None = None
    filter: str = "true"
    parameters: Mapping[str, object] | None = None
    events_per_batch_max: int = EVENTS_PER_BATCH_MAX
    mismatch_to_null: bool = False
    fail_on_data_loss: bool = True
    producer: str | None = None
    batch: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> BrokerOptions:
        """Check the options that Spark passes on; raises ConnectorError for a wrong one.

        >>> BrokerOptions.of({"broker": "tidegate://localhost", "identity": "spark"}).filter
        'true'
        """
        brokers = tuple(each.strip() for each in options["broker"].split(",") if each.strip())
        if not brokers:
            raise ConnectorError("option 'broker' is empty; set it to tidegate://host:port")
        _check_urls(brokers)
        filter = options.get("filter", "true")
        try:
            parse(filter)
        except TidegateError as error:
            raise ConnectorError(f"option 'filter': {error}") from None
        producer, batch = options.get("producer"), integer_option(options, "batch", least=0)
        if (producer is None) != (batch is None):
            raise ConnectorError("give both options 'producer' and 'batch', or neither")
        most = integer_option(options, "maxEventsPerBatch", least=1)
        return cls(
            brokers=brokers,
            identity=options.get("identity"),
            token=options.get("token"),
            ca=options.get("ca"),
            cert=options.get("cert"),
            key=options.get("key"),
            timeout_s=_timeout(options.get("timeout")),
            space=options.get("space"),
            filter=filter,
            parameters=_parameters(options.get("params")),
            events_per_batch_max=EVENTS_PER_BATCH_MAX if most is None else most,
            mismatch_to_null=mismatch_to_null(options),
            fail_on_data_loss=_boolean(options, "failOnDataLoss", default=True),
            producer=producer,
            batch=batch,
        )

    def connect(self, identity: str | None, **more: Any) -> SyncClient:
        """Connect to the broker; ``more`` is as for `tidegate.connect`."""
        _check_network()
        from tidegate.network.client.sync import connect_sync
        from tidegate.network.client.tls import tls_context

        return connect_sync(
            list(self.brokers),
            identity=identity,
            token=self.token,
            tls=tls_context(self.ca, self.cert, self.key) if self.ca or self.cert else None,
            timeout=self.timeout_s,
            **more,
        )


def _check_network() -> None:
    """Check that the network is installed, which is an extra of the package."""
    try:
        import tidegate.network.client.sync  # noqa: F401
    except ImportError as error:
        raise ConnectorError(
            f"a broker needs the extra `network`: pip install 'tidegate[network]' ({error})"
        ) from None


def _check_urls(brokers: tuple[str, ...]) -> None:
    _check_network()
    from tidegate.network.client.address import BrokerAddress

    for url in brokers:
        try:
            BrokerAddress.parse(url)
        except TidegateError as error:
            raise ConnectorError(f"option 'broker': {error}") from None


def _parameters(text: str | None) -> Mapping[str, object] | None:
    if text is None:
        return None
    try:
        return decode_line(text.encode())
    except TidegateError as error:
        raise ConnectorError(f"option 'params': {error}; write {{\"limit\": 10}}") from None


def _timeout(text: str | None) -> float:
    if text is None:
        return TIMEOUT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 3_600:
        raise ConnectorError(f"option 'timeout' is {text!r:.120}; take seconds, at most 3600")
    return seconds


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ConnectorError(f"option {name!r} is {text!r:.120}; take 'true' or 'false'")
    return text == "true"
