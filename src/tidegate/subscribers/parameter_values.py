"""The values of a subscriber's parameters, which any thread or task may change.

Rule. The assignment of a value and the sending of the update happen in mutual exclusion with other
assignments, so updates are sent in the order in which the values changed (Parametric Subscriptions,
5.1). The paper has a lock for each field; here all fields of a subscriber share one, because
several of them can change as one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from tidegate.errors import SubscriptionError
from tidegate.language.values import Value


class Check(Protocol):
    """A parameter, as far as its values are concerned."""

    initial: Value | None

    def check(self, raw: object) -> Value | None:
        """Take what was assigned as a value; raises BadValueError that names the field."""
        ...


class FieldListener(Protocol):
    """Whoever is to know of changes."""

    def changed(self, values: Mapping[str, Value | None]) -> None:
        """Some values have changed, as one; called while the lock is held."""
        ...


class Fields:
    """The values of one subscriber.

    ``values`` is never changed but replaced as a whole, so whoever reads it sees values that
    belong together.
    """

    def __init__(self, owner: str, checks: Mapping[str, Check]) -> None:
        self.lock = threading.Lock()
        self.values: Mapping[str, Value] = _without_none(
            {name: check.initial for name, check in checks.items()}
        )
        self.listener: FieldListener | None = None
        self._owner = owner
        self._checks = checks

    def assign(self, raw: Mapping[str, object]) -> None:
        """Change values, all or none; None takes one away."""
        unknown = [name for name in raw if name not in self._checks]
        if unknown:
            there = ", ".join(self._checks) or "none"
            raise SubscriptionError(
                f"{self._owner} has no parameter {unknown[0]!r}; it has {there}"
            )
        checked = {name: self._checks[name].check(each) for name, each in raw.items()}
        with self.lock:
            self.values = _without_none({**self.values, **checked})
            if self.listener is not None:
                self.listener.changed(checked)


def _without_none(values: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}
