"""The current values of a subscriber's parameters, which any thread or task may change.

Rule. A value is assigned and its update sent in mutual exclusion with other assignments, so updates
are sent in the order in which the values changed (Parametric Subscriptions, 5.1). The paper has a
lock per field. Here one lock serves all parameters of a subscriber, because `Subscriber.set`
changes several of them as one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from tidegate.errors import SubscriptionError
from tidegate.language.values import Value


class ValueCheck(Protocol):
    """The initial value of a parameter and the check of assigned ones; `Parameter` has both."""

    initial: Value | None

    def check(self, raw: object) -> Value | None:
        """Convert an assigned object to a value; raises BadValueError that names the parameter."""
        ...


class ValuesListener(Protocol):
    """Sends changed values; implemented by `Attachment`."""

    def check(self, values: Mapping[str, Value]) -> None:
        """Raise if the parameters cannot have these values; called before any of them changes."""
        ...

    def changed(self, values: Mapping[str, Value | None]) -> None:
        """Send values that changed together; called while `ParameterValues.lock` is held."""
        ...


class ParameterValues:
    """The values of one subscriber's parameters.

    ``values`` is replaced as a whole and never modified, so that a reader needs no lock to see
    values that belong together.
    """

    def __init__(self, owner: str, checks: Mapping[str, ValueCheck]) -> None:
        # Held while values change and their update is sent. It comes after the hub's lock and
        # before the connection's (see `engine_connection`).
        self.lock = threading.Lock()
        self.values: Mapping[str, Value] = _without_none(
            {name: check.initial for name, check in checks.items()}
        )
        self.listener: ValuesListener | None = None
        self._owner = owner
        self._checks = checks

    def assign(self, raw: Mapping[str, object]) -> None:
        """Change some values, all of them or, if one is wrong, none; None removes a value."""
        unknown = [name for name in raw if name not in self._checks]
        if unknown:
            known = ", ".join(self._checks) or "none"
            raise SubscriptionError(
                f"{self._owner} has no parameter {unknown[0]!r}; it has {known}"
            )
        checked = {name: self._checks[name].check(each) for name, each in raw.items()}
        with self.lock:
            values = _without_none({**self.values, **checked})
            if self.listener is not None:
                self.listener.check(values)
            self.values = values
            if self.listener is not None:
                self.listener.changed(checked)


def _without_none(values: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}
