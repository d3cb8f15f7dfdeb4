from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from support.command_line import Folder
from tidegate.cli import cli, main

GOOD = "price < :limit and symbol like 'N%SE'"


def check(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], catch_exceptions=False)


def as_json(*arguments: str) -> dict[str, Any]:
    result = check("--json", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command as it is installed."""
    monkeypatch.setattr("sys.argv", ["tidegate", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_a_filter() -> None:
    result = check(GOOD)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "filter        price < :limit and symbol like 'N%SE'\n"
        "shape         price < ? and symbol like ?\n"
        "row           :limit, 'N%SE'\n"
        "attributes    price, symbol\n"
        "parameters    limit\n"
        "variables     none\n"
        "evolves       no\n"
        "normal form   symbol like 'N%SE' and price < :limit\n"
    )


def test_a_row_is_shown_as_in_a_filter() -> None:
    result = check(
        "x in (1, '1', true, 1.0, 'a, b', infinity, timestamp '2026-01-02') and y > @v + t"
    )
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["row"] == ("1, '1', true, 1.0, 'a, b', infinity, timestamp '2026-01-02T00:00:00Z'")
    assert lines["variables"] == "v"
    assert lines["evolves"] == "yes"


def test_a_filter_that_every_event_matches() -> None:
    result = check("true")
    assert "row           none\n" in result.stdout
    assert result.stderr == ""


def test_a_filter_as_json() -> None:
    assert as_json(GOOD) == {
        "filter": GOOD,
        "shape": "price < ? and symbol like ?",
        "row": [{"parameter": "limit"}, "N%SE"],
        "attributes": ["price", "symbol"],
        "parameters": ["limit"],
        "variables": [],
        "evolves": False,
        "normal_form": "symbol like 'N%SE' and price < :limit",
        "never_matches": False,
    }


def test_what_json_cannot_hold() -> None:
    report = as_json(
        "x in (9223372036854775807, 1.5, true, 'é', -infinity, timestamp '2026-01-02')"
    )
    assert report["row"] == [
        2**63 - 1,
        1.5,
        True,
        "é",
        {"value": "-infinity"},
        {"value": "timestamp '2026-01-02T00:00:00Z'"},
    ]


def test_a_bad_filter(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "price < volume"], monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: the right side of '<' must be a value; 'volume' would be an attribute. "
        "Write :volume for a parameter or 'volume' for a string\n"
        "  price < volume\n"
        "          ^^^^^^\n"
    )


def test_a_bad_filter_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "--json", "symbol = 'IBM"], monkeypatch) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "error": "this string is not closed; it needs another '",
        "start": 9,
        "end": 13,
    }
    assert err == ""


def test_a_text_that_is_no_unicode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "symbol = '\udc80'"], monkeypatch) == 2
    assert "without lone surrogates" in capsys.readouterr().err


def test_a_filter_that_never_matches() -> None:
    result = check("price < 1 and price > 2")
    assert result.exit_code == 0
    assert result.stderr == "warning: no event can match this filter\n"
    assert "normal form   false\n" in result.stdout
    assert as_json("price < 1 and price > 2")["never_matches"] is True


def test_a_pattern() -> None:
    result = check("--as", "pattern", "price > :p then price > 9 within 2 min")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "pattern       price > :p then price > 9 within 120 s\n"
        "within s      120.0\n"
        "parameters    p\n"
        "\n"
        "step 1\n"
        "filter        price > :p\n"
    )
    assert "\nstep 2\nfilter        price > 9\n" in result.stdout


def test_a_pattern_as_json() -> None:
    report = as_json("--as", "pattern", "a = 1 then b < 1 and b > 2")
    assert (report["pattern"], report["within_s"]) == ("a = 1 then b < 1 and b > 2", None)
    assert [step["never_matches"] for step in report["steps"]] == [False, True]


def test_a_pattern_with_a_step_that_never_matches() -> None:
    result = check("--as", "pattern", "a = 1 then b < 1 and b > 2")
    assert result.exit_code == 0
    assert result.stderr == "warning: no event can match this filter\n"


def test_an_advertisement() -> None:
    result = check("--as", "advertisement", "price > 0 and symbol is not null")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "advertisement price > 0 and symbol is not null\nattributes    price, symbol\n"
    )
    assert as_json("--as", "advertisement", "price > 0") == {
        "advertisement": "price > 0",
        "attributes": ["price"],
    }


def test_a_pattern_is_no_filter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "a = 1 then b = 2"], monkeypatch) == 2
    assert "`then` and `within` make a pattern" in capsys.readouterr().err


def test_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check"], monkeypatch) == 2
    assert run(["check", "--as", "poem", "a = 1"], monkeypatch) == 2
    assert run(["nothing"], monkeypatch) == 2
    assert run(["check", "--help"], monkeypatch) == 0
    assert run(["--version"], monkeypatch) == 0
    assert "tidegate 0." in capsys.readouterr().out


# -- in a space -----------------------------------------------------------------------------------


@pytest.fixture
def space(folder: Folder) -> str:
    types = {"price": "float", "symbol": "string"}
    return str(folder.path / folder.write("s.json", [{"name": "trades", "attributes": types}]))


def test_what_fits_the_space(space: str) -> None:
    assert check("--space", space, GOOD).stdout == check(GOOD).stdout
    pattern = ["--as", "pattern", "price > 1 then price > 2"]
    assert check("--space", space, *pattern).stdout == check(*pattern).stdout


def test_what_does_not_fit_the_space(space: str, folder: Folder) -> None:
    said = folder.refused("check", "--space", space, "symbol = 'a' and prize < 10")
    assert said == (
        "error: space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
        "  symbol = 'a' and prize < 10\n"
        "                   ^^^^^\n"
    )
    result = check("--space", space, "--json", "--as", "advertisement", "symbol > 5")
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {
        "error": "symbol is a string in space 'trades'; "
        "compare it with a string, in quotes, not a number",
        "start": 9,
        "end": 10,
    }
    assert "no.json: cannot be read" in folder.refused("check", "--space", "no.json", "true")


@pytest.mark.parametrize(
    ("text", "hinted"),
    [
        ("time > '2026-01-01'", ["2026-01-01"]),
        ("a = '2026-01-01T00:00:00Z' or b in ('x', '2026-01-02 03:04')",
         ["2026-01-01T00:00:00Z", "2026-01-02 03:04"]),
        ("time > timestamp '2026-01-01T00:00:00Z'", []),
        ("name like '2026-01-01%' or name starts with '2026-01-01'", []),
        ("name = '2026-01-01-a' or name = '12026-01-01'", []),
    ],
)  # fmt: skip
def test_a_string_that_looks_like_a_time(folder: Folder, text: str, hinted: list[str]) -> None:
    ran = folder.run("check", text)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        f"hint: '{each}' is compared as a string; a time is written timestamp '{each}'"
        for each in hinted
    ]
