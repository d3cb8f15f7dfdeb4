"""What a broker takes from others: things that it can use, and not too large."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.errors import RoutingError
from tidegate.language.advertisements import Advertisement, parse_advertisement
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.parser import over_limit, size_of
from tidegate.language.patterns import Pattern, parse_pattern
from tidegate.routing.messages import Publication


def checked_subscription(wanted: Filter | Pattern | str, limits: Limits) -> Filter | Pattern:
    """What a client asks for; a pattern of one step is a filter."""
    if isinstance(wanted, str):
        wanted = parse_pattern(wanted, limits)
    if isinstance(wanted, Pattern) and len(wanted.steps) == 1:
        wanted = wanted.steps[0]
    if isinstance(wanted, Pattern):
        check_pattern(wanted, limits)
    else:
        check_filter(wanted, limits)
    return wanted


def checked_advertisement(offered: object, limits: Limits) -> Advertisement:
    """What a client will publish."""
    if isinstance(offered, str):
        offered = parse_advertisement(offered, limits)
    if not isinstance(offered, Advertisement):
        raise RoutingError(f"an advertisement is needed, not {type(offered).__name__}")
    _check_size(offered, limits)
    return offered


def check_pattern(pattern: Pattern, limits: Limits) -> None:
    """See that a pattern has steps, few enough, that can be routed."""
    steps_max = limits.pattern_steps_max
    if not 1 <= len(pattern.steps) <= steps_max:
        raise RoutingError(
            f"a pattern has between 1 and {steps_max} steps, not {len(pattern.steps)}"
        )
    for step in pattern.steps:
        check_filter(step, limits)


def check_filter(wanted: object, limits: Limits) -> None:
    """See that something is a filter that can be routed, and not too large."""
    if not isinstance(wanted, Filter):
        raise RoutingError(f"a subscription has a filter, not {type(wanted).__name__}")
    if wanted.parameters or wanted.variables or wanted.evolves:
        raise RoutingError(
            f"brokers route filters whose values are all known, which `{wanted}` is not"
        )
    _check_size(wanted, limits)


def _check_size(item: Filter | Advertisement, limits: Limits) -> None:
    reason = too_large(item, limits)
    if reason is not None:
        raise RoutingError(reason)


def too_large(item: Filter | Advertisement, limits: Limits) -> str | None:
    """Why something is over the limits; None if it is not.

    Its text is as brokers write it, not as a client has: so what a broker takes from a client, its
    neighbours take from it.
    """
    size = item.size if isinstance(item, Filter) else size_of(item.node)
    length = item.length_chars if isinstance(item, Filter) else len(str(item))
    if length > limits.length_chars_max:
        return f"the filter has {length} characters; at most {limits.length_chars_max} are taken"
    return over_limit(size, limits)


def check_times(publications: Iterable[Publication]) -> None:
    """See that events say when they were published."""
    if any(each.event.time is None for each in publications):
        raise RoutingError("an event between brokers has its time of publication")
