"""Overlays as JSON, so that users can simulate their own.

    {"name": "mine",
     "brokers": ["hub", {"name": "east", "region": "coast", "position": [3, 1]}],
     "domains": {"all": "acyclic"},
     "links": [{"a": "hub", "b": "east", "delay_s": 0.01, "domain": "all"}]}

A link may have `bandwidth_bytes_per_s`. In a hierarchical domain `a` is the master of `b`. If there
is only one domain, links need not name it. An overlay that breaks the rules of `topology.py` is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from tidegate.errors import TopologyError
from tidegate.language.values import INT_MAX
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import Link, Topology

FILE_BYTES_MAX = 256 * 2**20

_Object = Mapping[str, object]


def to_json(topology: Topology) -> str:
    """The description of an overlay, with a line for each broker and link."""
    brokers = [_broker_entry(topology, broker) for broker in topology.brokers]
    links = [_link_entry(link) for link in topology.links]
    domains = {domain: kind.value for domain, kind in topology.domains.items()}
    return (
        f'{{"name": {_dump(topology.name)},\n'
        f' "brokers": {_lines(brokers)},\n'
        f' "domains": {_dump(domains)},\n'
        f' "links": {_lines(links)}}}\n'
    )


def from_json(text: str | bytes) -> Topology:
    """Read the description of an overlay; raises TopologyError that names what is wrong.

    >>> links = '{"a": "x", "b": "y", "delay_s": 0.01}'
    >>> text = f'{{"brokers": ["x", "y"], "domains": {{"all": "general"}}, "links": [{links}]}}'
    >>> from_json(text).neighbours("x")
    ('y',)
    """
    if len(text) > FILE_BYTES_MAX:
        raise TopologyError(f"an overlay must not be longer than {FILE_BYTES_MAX} bytes")
    described = _object(_decode(text), "an overlay", ("name", "brokers", "domains", "links"))
    domains = _domains(described.get("domains", {}))
    brokers, regions, positions = [], {}, {}
    for number, each in enumerate(_list(described, "brokers")):
        broker = {"name": each} if isinstance(each, str) else each
        where = f"broker {number}"
        entry = _object(broker, where, ("name", "region", "position"))
        name = _text(entry, "name", where)
        brokers.append(name)
        if "region" in entry:
            regions[name] = _text(entry, "region", where)
        if "position" in entry:
            positions[name] = _position(entry["position"], where)
    links = tuple(
        _link(each, f"link {number}", domains)
        for number, each in enumerate(_list(described, "links"))
    )
    name = _text(described, "name", "an overlay") if "name" in described else "overlay"
    return Topology(name, tuple(brokers), links, domains, regions, positions)


def read_overlay(file: str) -> Topology:
    """Read an overlay from a file; raises TopologyError that names the file."""
    try:
        with open(file, "rb") as stream:
            return from_json(stream.read(FILE_BYTES_MAX + 1))
    except OSError as error:
        raise TopologyError(f"{file}: cannot be read: {error.strerror or error}") from None
    except TopologyError as error:
        raise TopologyError(f"{file}: {error}") from None


def _broker_entry(topology: Topology, broker: str) -> object:
    entry: dict[str, object] = {"name": broker}
    if broker in topology.regions:
        entry["region"] = topology.regions[broker]
    if broker in topology.positions:
        entry["position"] = list(topology.positions[broker])
    return entry if len(entry) > 1 else broker


def _link_entry(link: Link) -> object:
    entry = {"a": link.a, "b": link.b, "delay_s": link.delay_s, "domain": link.domain}
    if link.bandwidth_bytes_per_s is None:
        return entry
    return entry | {"bandwidth_bytes_per_s": link.bandwidth_bytes_per_s}


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(entries: Iterable[object]) -> str:
    inside = ",\n  ".join(map(_dump, entries))
    return f"[\n  {inside}]" if inside else "[]"


def _decode(text: str | bytes) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise TopologyError(
            f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except UnicodeDecodeError:
        raise TopologyError("not valid JSON: is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # thousands of digits, thousands of brackets
        raise TopologyError(f"not valid JSON: {error}") from None


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object as a dict; by itself, `json` silently keeps the last of two equal names."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise TopologyError(f"the name {duplicate!r} occurs twice in one object")
    return fields


def _object(value: object, what: str, fields: tuple[str, ...]) -> _Object:
    if not isinstance(value, dict):
        raise TopologyError(f"{what} must be a JSON object with {', '.join(fields)}")
    for name in value:
        if name not in fields:
            raise TopologyError(f"{what} has no field {name!r}; it has {', '.join(fields)}")
    return value


def _list(described: _Object, field: str) -> list[object]:
    value = described.get(field)
    if not isinstance(value, list):
        raise TopologyError(f"an overlay needs {field!r}, a list")
    return value


def _text(entry: _Object, field: str, where: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str):
        raise TopologyError(f"{where} needs {field!r}, a string")
    return value


def _domains(value: object) -> dict[str, Architecture]:
    kinds = {kind.value: kind for kind in Architecture}
    if not isinstance(value, dict):
        raise TopologyError("'domains' must be an object of names and architectures")
    for domain, kind in value.items():
        if not isinstance(kind, str) or kind not in kinds:
            raise TopologyError(f"the domain {domain!r} must be one of {', '.join(kinds)}")
    return {domain: kinds[kind] for domain, kind in value.items()}


def _position(value: object, where: str) -> tuple[float, float]:
    if isinstance(value, list) and len(value) == 2:
        x, y = value
        if _is_number(x) and _is_number(y):
            return float(x), float(y)
    raise TopologyError(f"{where}: a position is a list of two numbers")


def _link(value: object, where: str, domains: Mapping[str, Architecture]) -> Link:
    fields = ("a", "b", "delay_s", "domain", "bandwidth_bytes_per_s")
    entry = _object(value, where, fields)
    delay_s, bandwidth = entry.get("delay_s"), entry.get("bandwidth_bytes_per_s")
    if not _is_number(delay_s):
        raise TopologyError(f"{where} needs 'delay_s', a number of seconds")
    if bandwidth is not None and not _is_number(bandwidth):
        raise TopologyError(f"{where}: 'bandwidth_bytes_per_s' must be a number")
    if "domain" not in entry and len(domains) == 1:
        (domain,) = domains
    else:
        domain = _text(entry, "domain", where)
    return Link(_text(entry, "a", where), _text(entry, "b", where), delay_s, domain, bandwidth)


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, int) and not isinstance(value, bool):
        return -INT_MAX <= value <= INT_MAX  # larger ones may not fit into a float
    return isinstance(value, float)
