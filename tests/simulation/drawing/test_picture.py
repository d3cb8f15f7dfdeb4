from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.drawing.loads import Loads
from tidegate.simulation.drawing.picture import LABELS_MAX, draw_overlay
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.plain_networks import one_domain
from tidegate.simulation.overlays.topology import Topology

pytestmark = pytest.mark.slow


def texts(topology: Topology, folder: Path, loads: Loads | None = None) -> list[str]:
    """What can be read in the picture of an overlay."""
    path = folder / "overlay.svg"
    draw_overlay(topology, path, loads)
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(each.itertext()) for each in found]


def loads_of(topology: Topology) -> Loads:
    links = {link: float(i) for i, link in enumerate(topology.links)}
    return Loads(links, {broker: float(i) for i, broker in enumerate(topology.brokers)})


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_every_topology(name: str, tmp_path: Path) -> None:
    made = generate(name, seed=1)
    read = texts(made, tmp_path)
    assert any(text.startswith(f"{name}: {len(made.brokers)} broker") for text in read)
    assert (set(made.brokers) <= set(read)) == (len(made.brokers) <= LABELS_MAX)


def test_the_legend_names_the_architectures(tmp_path: Path) -> None:
    read = texts(generate("hierarchies-in-graph"), tmp_path)
    assert "hierarchical: 6 domains (arrows lead to the master)" in read
    assert "general: roots" in read
    assert "hierarchical" in texts(generate("hierarchy", 100), tmp_path)
    assert "acyclic" in texts(generate("chain"), tmp_path)


def test_loads(tmp_path: Path) -> None:
    made = generate("gryphon")
    assert not any("messages" in text for text in texts(made, tmp_path, Loads()))
    read = texts(made, tmp_path, loads_of(made))
    assert {"messages", "on a link", "of a broker"} <= set(read)
    nothing = Loads(dict.fromkeys(made.links, 0), dict.fromkeys(made.brokers, 0))
    assert "on a link" in texts(made, tmp_path, nothing)


def test_busy_links_are_thicker(tmp_path: Path) -> None:
    made = generate("chain", 3)
    busy = Loads({made.links[0]: 100, made.links[1]: 1})
    draw_overlay(made, tmp_path / "overlay.svg", busy)
    drawn = (tmp_path / "overlay.svg").read_text()
    group = drawn[drawn.index("LineCollection_2") :]  # the first has the colours of architectures
    thin, thick, *_ = (float(width) for width in re.findall(r"stroke-width: ([\d.]+)", group))
    assert thin * 3 < thick


def test_png(tmp_path: Path) -> None:
    draw_overlay(generate("gryphon"), tmp_path / "overlay.PNG")
    assert (tmp_path / "overlay.PNG").read_bytes().startswith(b"\x89PNG")


def test_the_same_overlay_gives_the_same_picture(tmp_path: Path) -> None:
    made = generate("transit-stub-acyclic", 30, seed=5)
    for name in ("a.svg", "b.svg"):
        draw_overlay(made, tmp_path / name, loads_of(made))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_names_are_no_markup(tmp_path: Path) -> None:
    links = [("$x_{$", "<b>&", 0.01)]
    made = one_domain("$\\frac$", ("$x_{$", "<b>&"), links, Architecture.GENERAL)
    read = texts(made, tmp_path)
    assert {"$x_{$", "<b>&", "$\\frac$: 2 brokers, 1 link"} <= set(read)


def size_of(topology: Topology, folder: Path, loads: Loads | None = None) -> tuple[float, float]:
    path = folder / "overlay.svg"
    draw_overlay(topology, path, loads)
    made = ElementTree.parse(path).getroot()
    return float(made.attrib["width"].rstrip("pt")), float(made.attrib["height"].rstrip("pt"))


def test_the_page_is_as_large_as_the_drawing_needs(tmp_path: Path) -> None:
    width, height = size_of(generate("chain", 8), tmp_path)
    assert width > 2 * height
    round_width, round_height = size_of(generate("star", 12), tmp_path)
    assert round_height > height
    with_bars, _ = size_of(generate("star", 12), tmp_path, loads_of(generate("star", 12)))
    assert with_bars > round_width
