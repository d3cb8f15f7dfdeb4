"""A budget of work: how many steps an operation of the algebra may take.

Rules. (1) Steps are counted, not seconds: the answer for given filters is the same on every
machine. (2) An operation that runs out of work gives its careful answer, which is sound: "not known
to cover", "may overlap", "merged, not exact", a wider estimate. (3) The budget is far above what
filters that people write take, so only filters made to be slow are answered with care.

Theory of operation. An operation opens a `Budget`, and what it calls takes steps from it with
``spend``, wherever work can grow faster than the filters: a comparison of two conjunctions, of two
patterns, of two lists of intervals, the evaluation of a node over a part of an elapsed range. One
step is about a microsecond. Work that is linear in the size of a filter is bounded by the
limits of the language and not counted. The budget in force belongs to the context (PEP 567), so
each thread has its own. Outside of a budget nothing is counted.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType

STEPS_MAX = 12_000
"""The budget of an operation, unless it says otherwise: ten milliseconds or two."""


class OutOfWorkError(Exception):
    """The budget in force is used up; caught where a careful answer is known."""


class Budget:
    """The steps that one operation may take, as a context manager.

    A budget inside of another has no more steps than the other has left, and takes them from it.
    One that is ``apart`` does not: the normal form of a filter is kept, so it must not depend on
    which operation needed it first. ``steps`` counts the steps of both.

    >>> with Budget(10) as budget:
    ...     spend(4)
    ...     budget.left
    6
    """

    __slots__ = ("_apart", "_beside", "_outer", "_steps_max", "left")

    def __init__(self, steps_max: int | None = None, *, apart: bool = False) -> None:
        self.left = self._steps_max = STEPS_MAX if steps_max is None else steps_max
        self._apart = apart
        self._beside = 0
        self._outer: Budget | None = None

    @property
    def steps(self) -> int:
        """The steps that were taken, those of all budgets inside of this one included."""
        return self._steps_max - self.left + self._beside

    def __enter__(self) -> Budget:
        outer = self._outer = _in_force.get()
        if outer is not None and not self._apart and outer.left < self._steps_max:
            self.left = self._steps_max = outer.left
        _in_force.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _in_force.set(self._outer)
        outer = self._outer
        if outer is not None:
            own = 0 if self._apart else self._steps_max - self.left
            outer.left -= own
            outer._beside += self.steps - own


_in_force: ContextVar[Budget | None] = ContextVar("_in_force", default=None)


def spend(steps: int = 1) -> None:
    """Take steps from the budget in force; raises OutOfWorkError if it has not as many."""
    budget = _in_force.get()
    if budget is None:
        return
    if budget.left < steps:
        budget.left = 0
        raise OutOfWorkError
    budget.left -= steps
