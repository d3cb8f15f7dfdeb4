"""Validation of what clients and neighbours send: it has the right type, can be used, and is not
too large.

Functions named ``check_...`` raise `RoutingError`; those named ``checked_...`` return what they
have checked, parsed if it was a text. A broker validates a whole message before it changes any of
its state, so that a message it refuses has no effect.

A broker accepts from a client only what its neighbours will accept from it. Therefore limits count
the text as brokers write it (`size_problem`), and a named subscription is checked in the form that
is forwarded (`check_wanted_filter`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter, check_values
from tidegate.language.limits import Limits
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import Size, over_limit, parse_filter, size_of
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter, underlying_filter
from tidegate.matching.records import checked_parameters
from tidegate.matching.subscription import Subscription
from tidegate.routing.messages import NamedSubscription, Publication, Subscribe, Update

NAME_CHARS_MAX = 200


# -- without a name -----------------------------------------------------------------------------


def checked_subscription(wanted: Filter | Pattern | str, limits: Limits) -> Filter | Pattern:
    """The filter or pattern of a subscription without a name; a pattern of one step is a filter."""
    if isinstance(wanted, str):
        wanted = parse_pattern(wanted, limits)
    if isinstance(wanted, Pattern) and len(wanted.steps) == 1:
        wanted = wanted.steps[0]
    if isinstance(wanted, Pattern):
        check_pattern(wanted, limits)
    else:
        check_filter(wanted, limits)
    return wanted


def checked_advertisement(advertisement: object, limits: Limits) -> Advertisement:
    """The advertisement of a client or neighbour."""
    if isinstance(advertisement, str):
        advertisement = parse_advertisement(advertisement, limits)
    if not isinstance(advertisement, Advertisement):
        raise RoutingError(f"an advertisement is needed, not {type(advertisement).__name__}")
    _check_size(advertisement, limits)
    return advertisement


def check_pattern(pattern: Pattern, limits: Limits) -> None:
    """Raise unless a pattern has an allowed number of steps and each of them is a static filter."""
    steps_max = limits.pattern_steps_max
    if not 1 <= len(pattern.steps) <= steps_max:
        raise RoutingError(
            f"a pattern has between 1 and {steps_max} steps, not {len(pattern.steps)}"
        )
    for step in pattern.steps:
        check_filter(step, limits)
    size = Size(*map(sum, zip(*(step.size for step in pattern.steps), strict=True)))
    problem = over_limit(size, limits)
    if problem is not None:
        raise RoutingError(f"the steps of the pattern together: {problem}")


def check_filter(wanted: object, limits: Limits) -> None:
    """Raise unless something is a static filter without parameters, and not too large."""
    if not isinstance(wanted, Filter):
        raise RoutingError(f"a subscription needs a filter, not {type(wanted).__name__}")
    if wanted.parameters or wanted.evolves:
        raise RoutingError(
            f"`{wanted}` has values that change; give the subscription a name, or write constants "
            "(the steps of a pattern can only have constants)"
        )
    _check_size(wanted, limits)


def _check_size(item: Filter | Advertisement, limits: Limits) -> None:
    problem = size_problem(item, limits)
    if problem is not None:
        raise RoutingError(problem)


def size_problem(item: Filter | Advertisement, limits: Limits) -> str | None:
    """Which limit a filter or advertisement exceeds, as the text of an error; None if none.

    The length is that of the text as brokers write it, whatever a client wrote. Otherwise the
    neighbours could refuse what this broker has accepted.
    """
    size = item.size if isinstance(item, Filter) else size_of(item.node)
    longest = limits.length_chars_max
    if item.is_longer(longest) if isinstance(item, Filter) else len(str(item)) > longest:
        return f"the filter has {len(str(item))} characters; at most {longest} are taken"
    return over_limit(size, limits)


# -- from neighbours ----------------------------------------------------------------------------


def check_wanted_filter(wanted: object, limits: Limits) -> None:
    """Raise unless brokers can forward a filter: all its values are known, except for time."""
    if isinstance(wanted, EvolvingFilter) and isinstance(wanted.filter, Filter):
        if wanted.filter.parameters or wanted.filter.variables:
            raise RoutingError(
                f"`{wanted.filter}` has parameters or variables, which no other broker knows; "
                "their values must be put in"
            )
        if not is_time_us(wanted.origin_us) or not isinstance(wanted.evolve, Evolve | None):
            raise RoutingError(
                f"`{wanted.filter}` evolves; it needs the time in microseconds at which `t` is 0, "
                "and an evolve mode or None"
            )
    elif not isinstance(wanted, Filter) or wanted.parameters or wanted.evolves:
        raise RoutingError(
            f"a neighbour can ask only for filters whose values are known, not for {wanted}"
        )
    _check_size(underlying_filter(wanted), limits)


def check_publication_times(publications: Iterable[Publication]) -> None:
    """Raise unless all events have a time of publication, which the first broker gives them."""
    if any(each.event.time is None for each in publications):
        raise RoutingError("an event from a neighbour must have its time of publication")


# -- with a name --------------------------------------------------------------------------------


def checked_named_subscription(
    message: Subscribe, now_us: int, limits: Limits, parser: BulkParser | None = None
) -> NamedSubscription:
    """The named subscription for which a client asks; `t` counts from now if it does not say.

    A parser that is kept reads many filters faster.
    """
    name, wanted = message.name, message.wanted
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX:
        raise RoutingError(f"the name of a subscription has 1 to {NAME_CHARS_MAX} characters")
    check_version(message.version)
    filter = checked_filter(wanted, limits, parser)
    values = checked_parameters(filter.parameters, message.parameters)
    known = {name: value for name, value in values.items() if value is not None}
    if not isinstance(message.evolve, Evolve | None):
        raise RoutingError(
            f"{message.evolve!r} is no evolve mode; there are Lazy(), Periodic(seconds) and "
            "Cached(seconds)"
        )
    origin_us = now_us if message.origin_us is None else message.origin_us
    if not is_time_us(origin_us):
        raise RoutingError(
            f"{origin_us!r} is no time in microseconds since 1970, in the years 1 to 9999"
        )
    # A static filter also matches events that were published before it and are still on their way;
    # an evolving one is in force from the time at which its `t` is 0.
    since = origin_us if filter.evolves else None
    subscription = Subscription(
        name, filter, known, since=since, origin=origin_us, evolve=message.evolve
    )
    return NamedSubscription(subscription, message.version, message.space)


def is_time_us(time_us: object) -> bool:
    """Whether something is a time in microseconds since 1970, in the years 1 to 9999."""
    return isinstance(time_us, int) and from_us(time_us) is not None


def check_version(version: object) -> None:
    """Raise unless something is a version: an integer of 64 bits; so versions have an order."""
    if not isinstance(version, int) or not -(2**63) <= version < 2**63:
        raise RoutingError(f"{version!r} is no version; versions are integers of 64 bits")


def checked_filter(wanted: object, limits: Limits, parser: BulkParser | None = None) -> Filter:
    """The filter of a named subscription; it may have parameters and evolve.

    With a parser for many, it is printed in the order of its shape, whether it came as text or not.
    """
    if isinstance(wanted, str):
        if parser is not None:
            wanted = Filter.of_shape(*parser.read(wanted))
        else:
            wanted = Filter(parse_filter(wanted, limits))
    if not isinstance(wanted, Filter):
        raise RoutingError(f"a named subscription needs a filter, not {type(wanted).__name__}")
    _check_size(wanted, limits)
    return wanted if parser is None else Filter.of_shape(*wanted.shape_and_row)


def updated_subscription(
    subscription: Subscription, message: Update, limits: Limits, parser: BulkParser | None = None
) -> Subscription:
    """A subscription after an update; raises if the update does not fit.

    `t` keeps counting from the same origin, also with another filter.
    """
    values = check_values("parameter :", message.parameters)
    if message.filter is None:
        return subscription.updated(values)
    filter = checked_filter(message.filter, limits, parser)
    kept = {
        name: value for name, value in subscription.parameters.items() if name in filter.parameters
    }
    since = subscription.origin if filter.evolves else None
    return replace(subscription, filter=filter, parameters=kept, since=since).updated(values)
