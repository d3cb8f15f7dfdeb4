from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays import json_file
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.json_file import from_json, to_json
from tidegate.simulation.overlays.topology import Link

MINE: dict[str, Any] = {
    "name": "mine",
    "brokers": ["hub", {"name": "east", "region": "coast", "position": [3, 1]}],
    "domains": {"all": "acyclic"},
    "links": [
        {"a": "hub", "b": "east", "delay_s": 0.01, "domain": "all", "bandwidth_bytes_per_s": 1e6}
    ],
}


def with_link(**fields: object) -> dict[str, Any]:
    return {**MINE, "links": [{**MINE["links"][0], **fields}]}


def test_all_fields() -> None:
    made = from_json(json.dumps(MINE))
    assert (made.name, made.brokers) == ("mine", ("hub", "east"))
    assert made.domains == {"all": Architecture.ACYCLIC}
    assert made.links == (Link("hub", "east", 0.01, "all", 1e6),)
    assert (made.regions, made.positions) == ({"east": "coast"}, {"east": (3.0, 1.0)})
    assert from_json(to_json(made)) == made
    assert from_json(to_json(made).encode()) == made


def test_optional_fields() -> None:
    text = (
        '{"brokers": ["x", "y"], "domains": {"d": "general"},'
        ' "links": [{"a": "x", "b": "y", "delay_s": 0}]}'
    )
    made = from_json(text)
    assert (made.name, made.links[0].domain) == ("overlay", "d")
    assert from_json('{"brokers": ["x"], "links": []}').brokers == ("x",)


def test_a_broker_or_link_is_a_line() -> None:
    assert len(to_json(generate("gryphon")).splitlines()) == 4 + 39 + 42


@settings(max_examples=settings().max_examples // 4)
@given(st.sampled_from(list(TOPOLOGIES)), st.integers(0, 2**32))
def test_round_trip(name: str, seed: int) -> None:
    made = generate(name, seed=seed)
    assert from_json(to_json(made)) == made


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ([], "an overlay must be a JSON object with name, brokers, domains, links"),
        ({**MINE, "edges": []}, "an overlay has no field 'edges'; it has name, brokers, domains"),
        ({**MINE, "name": 1}, "an overlay needs 'name', a string"),
        ({**MINE, "brokers": "hub"}, "an overlay needs 'brokers', a list"),
        ({"brokers": ["x"]}, "an overlay needs 'links', a list"),
        ({**MINE, "brokers": ["hub", 1]}, "broker 1 must be a JSON object with name, region"),
        ({**MINE, "brokers": [{"region": "r"}]}, "broker 0 needs 'name', a string"),
        (
            {**MINE, "brokers": [{"name": "x", "position": [1]}]},
            "broker 0: a position is a list of",
        ),
        ({**MINE, "domains": []}, "'domains' must be an object of names and architectures"),
        (
            {**MINE, "domains": {"all": "mesh"}},
            "the domain 'all' must be one of hierarchical, acyclic, general",
        ),
        (with_link(a=1), "link 0 needs 'a', a string"),
        (with_link(delay_s="10 ms"), "link 0 needs 'delay_s', a number of seconds"),
        (with_link(delay_s=True), "link 0 needs 'delay_s', a number of seconds"),
        (with_link(delay_s=10**400), "link 0 needs 'delay_s', a number of seconds"),
        (
            with_link(delay_s=float("inf")),
            "has a delay of inf s; it must be finite and not negative",
        ),
        (with_link(bandwidth_bytes_per_s="1M"), "link 0: 'bandwidth_bytes_per_s' must be a number"),
        (with_link(domain=None), "link 0 needs 'domain', a string"),
        (with_link(weight=1), "link 0 has no field 'weight'"),
    ],
)
def test_what_is_refused(described: object, reason: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(reason)):
        from_json(json.dumps(described))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name":\n oops}', "not valid JSON: Expecting value at line 2, column 2"),
        (b"\xff{}", "not valid JSON: "),
        ("[" * 100_000, "not valid JSON: "),
        ("9" * 10_000, "not valid JSON: "),
        (
            '{"domains": {"x": "general", "x": "acyclic"}}',
            "the name 'x' occurs twice in one object",
        ),
    ],
)
def test_text_that_is_no_json_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(reason)):
        from_json(text)


def test_a_long_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "FILE_BYTES_MAX", 10)
    with pytest.raises(TopologyError, match="an overlay must not be longer than 10 bytes"):
        from_json(json.dumps(MINE))
