from __future__ import annotations

import json
import re

import pytest

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.drawing.loads import Loads, loads_from_json
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.plain_networks import one_domain

CHAIN = generate("chain", 3)


def test_links_and_brokers() -> None:
    text = '{"links": {"b1-b0": 2, "b0-b1": 3, "b1-b2": 1.5}, "brokers": {"b1": 7}}'
    made = loads_from_json(text, CHAIN)
    assert made == Loads({CHAIN.link("b0", "b1"): 5, CHAIN.link("b1", "b2"): 1.5}, {"b1": 7})
    assert loads_from_json(b"{}", CHAIN) == Loads()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ([], 'loads must be a JSON object with "links", "brokers" or both'),
        ({"nodes": {}}, 'loads must be a JSON object with "links", "brokers" or both'),
        ({"links": [1]}, "'links' of loads must be an object of names and numbers"),
        ({"links": {"b0-b2": 1}}, "loads of 'b0-b2': there is no such link in 'chain'"),
        ({"brokers": {"b9": 1}}, "there is no broker 'b9' in 'chain'"),
        ({"brokers": {"b1": "1"}}, "the load of 'b1' must be a number, 0 or more"),
        ({"brokers": {"b1": True}}, "the load of 'b1' must be a number, 0 or more"),
        ({"links": {"b0-b1": -1}}, "the load of 'b0-b1' must be a number, 0 or more"),
        ({"links": {"b0-b1": float("nan")}}, "the load of 'b0-b1' must be a number, 0 or more"),
    ],
)
def test_what_is_refused(made: object, reason: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(reason)):
        loads_from_json(json.dumps(made), CHAIN)


@pytest.mark.parametrize("text", ["{", b"\xff", "[" * 100_000])
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(TopologyError, match=r"^loads are not valid JSON: "):
        loads_from_json(text, CHAIN)


def test_a_name_that_two_links_have() -> None:
    links = [("a-b", "c", 0.01), ("a", "b-c", 0.01), ("c", "a", 0.01)]
    made = one_domain("hyphens", ("a", "a-b", "b-c", "c"), links, Architecture.ACYCLIC)
    with pytest.raises(TopologyError, match="'a-b-c': two links have this name"):
        loads_from_json('{"links": {"a-b-c": 1}}', made)
    assert len(loads_from_json('{"links": {"b-c-a": 1, "c-a-b": 1}}', made).links) == 2
