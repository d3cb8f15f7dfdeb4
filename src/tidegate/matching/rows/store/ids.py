"""The ids of subscriptions by number, and their numbers by id.

Both are Python objects, which take about 135 bytes for each id. An array of strings with a hash
table of numbers took 25 bytes, but every update and every match of one event looks ids up, and was
slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.values import to_value

Numbers = npt.NDArray[np.int32]


class IdIndex:
    """The ids of all numbers, and the ``numbers`` by id of those that were entered.

    Staged subscriptions and past versions have an id too, but are not entered.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self.numbers: dict[str, int] = {}

    def reserve(self, count: int) -> None:
        """Make room for numbers below ``count``."""
        self._ids += [""] * (count - len(self._ids))

    def write(self, numbers: Numbers, ids: Sequence[str]) -> None:
        """Set the ids of numbers that are not entered."""
        for number, id in zip(numbers.tolist(), ids, strict=True):
            self._ids[number] = id

    def id(self, number: int) -> str:
        """The id of a number."""
        return self._ids[number]

    def ids_of(self, numbers: Numbers) -> list[str]:
        """The ids of numbers.

        Ids are scattered over memory. A loop of Python hardly loads two of them at once, that of
        ``itemgetter`` loads many: a hundred that are in no cache take a tenth of the time.
        """
        if len(numbers) > 1:
            return list(itemgetter(*numbers.tolist())(self._ids))
        return [self._ids[number] for number in numbers.tolist()]

    def between(self, begin: int, end: int) -> list[str]:
        """The ids of the numbers from ``begin`` to before ``end``."""
        return self._ids[begin:end]

    def enter(self, numbers: Numbers) -> None:
        """Make numbers known by their ids, all or none; SubscriptionError if one is taken."""
        for done, number in enumerate(numbers.tolist()):
            id = self._ids[number]
            if self.numbers.setdefault(id, number) != number:
                # all before this one were entered by this call
                for each in numbers[:done].tolist():
                    self.remove(each)
                raise SubscriptionError(f"there already is a subscription {id!r}")

    def remove(self, number: int) -> None:
        """Make a number unknown by its id."""
        del self.numbers[self._ids[number]]


def check_ids(ids: Iterable[object]) -> None:
    """Raise SubscriptionError unless all ids are strings of valid Unicode."""
    for id in ids:
        if not isinstance(id, str):
            raise SubscriptionError(f"an id is a string, not {type(id).__name__}")
        if not id.isascii():
            try:
                to_value(id)
            except BadValueError as error:
                raise SubscriptionError(f"the id {id!r}: {error}") from None
