"""What a broker takes from others: things that it can use, and not too large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter, check_values
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import over_limit, parse_filter, size_of
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter, filter_of
from tidegate.matching.records import checked_parameters
from tidegate.matching.subscription import Subscription
from tidegate.routing.messages import NamedSubscription, Publication, Subscribe, Update

NAME_CHARS_MAX = 200


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
    """See that something is a filter that stands still, and not too large."""
    if not isinstance(wanted, Filter):
        raise RoutingError(f"a subscription has a filter, not {type(wanted).__name__}")
    if wanted.parameters or wanted.evolves:
        raise RoutingError(
            f"`{wanted}` has values that change; a subscription with such a filter has a name, "
            "and steps of patterns have none"
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
    longest = limits.length_chars_max
    if item.is_longer(longest) if isinstance(item, Filter) else len(str(item)) > longest:
        return f"the filter has {len(str(item))} characters; at most {longest} are taken"
    return over_limit(size, limits)


def check_standing(wanted: object, limits: Limits) -> None:
    """See that something can stand in the tables of brokers: all but the time is known."""
    if isinstance(wanted, EvolvingFilter) and isinstance(wanted.filter, Filter):
        if wanted.filter.parameters or wanted.filter.variables:
            raise RoutingError(
                f"`{wanted.filter}` has parameters or variables, which no other broker knows"
            )
        if not is_time_us(wanted.origin_us) or not isinstance(wanted.evolve, Evolve | None):
            raise RoutingError(f"`{wanted.filter}` does not say since when and how it moves")
    elif not isinstance(wanted, Filter) or wanted.parameters or wanted.evolves:
        raise RoutingError(
            f"a broker asks another for filters whose values are known, not for {wanted}"
        )
    _check_size(filter_of(wanted), limits)


def checked_named(message: Subscribe, now_us: int, limits: Limits) -> NamedSubscription:
    """A subscription that a client gives a name."""
    name, wanted = message.name, message.wanted
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX:
        raise RoutingError(f"a name has from 1 to {NAME_CHARS_MAX} characters")
    check_version(message.version)
    filter = checked_filter(wanted, limits)
    values = checked_parameters(filter.parameters, message.parameters)
    known = {name: value for name, value in values.items() if value is not None}
    if not isinstance(message.evolve, Evolve | None):
        raise RoutingError(f"{message.evolve!r} does not say when a filter evolves")
    origin_us = now_us if message.origin_us is None else message.origin_us
    if not is_time_us(origin_us):
        raise RoutingError(f"{origin_us!r} is no time in microseconds")
    since = origin_us if filter.evolves else None
    subscription = Subscription(
        name, filter, known, since=since, origin=origin_us, evolve=message.evolve
    )
    return NamedSubscription(subscription, message.version)


def is_time_us(time_us: object) -> bool:
    """Whether something is a time in microseconds, in the years 1 to 9999."""
    return isinstance(time_us, int) and from_us(time_us) is not None


def check_version(version: object) -> None:
    """See that something is a version, which another one can be later than."""
    if not isinstance(version, int):
        raise RoutingError(f"{version!r} is no version; versions are integers")


def checked_filter(wanted: object, limits: Limits) -> Filter:
    """The filter of a subscription that has a name; it may have parameters, and move."""
    if isinstance(wanted, str):
        wanted = Filter(parse_filter(wanted, limits))
    if not isinstance(wanted, Filter):
        raise RoutingError(f"a subscription with a name has a filter, not {type(wanted).__name__}")
    _check_size(wanted, limits)
    return wanted


def updated(subscription: Subscription, message: Update, limits: Limits) -> Subscription:
    """A subscription after a change; raises where that cannot be made."""
    values = check_values("parameter :", message.parameters)
    if message.filter is None:
        return subscription.updated(values)
    filter = checked_filter(message.filter, limits)
    kept = {
        name: value for name, value in subscription.parameters.items() if name in filter.parameters
    }
    since = subscription.origin if filter.evolves else None
    return replace(subscription, filter=filter, parameters=kept, since=since).updated(values)


def check_times(publications: Iterable[Publication]) -> None:
    """See that events say when they were published."""
    if any(each.event.time is None for each in publications):
        raise RoutingError("an event between brokers has its time of publication")
