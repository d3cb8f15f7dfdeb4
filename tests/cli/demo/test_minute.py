from __future__ import annotations

from click.testing import CliRunner

from tidegate.cli import cli


def demo(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["demo", "--no-network", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_one_seed_is_one_run() -> None:
    assert demo() == demo()
    assert demo("--seed", "8") == demo("--seed", "8")
    assert demo("--seed", "8") != demo()


def test_all_four_kinds_of_subscribers_receive_something() -> None:
    lines = demo().splitlines()
    received = [line.split() for line in lines[-4:]]
    assert [line[0] for line in received] == ["static", "parametric", "evolving", "tidal"]
    assert all(int(line[2]) > 0 for line in received)
