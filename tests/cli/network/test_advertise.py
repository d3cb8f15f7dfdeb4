from __future__ import annotations

from support.broker_process import BrokerProcess
from support.command_line import Folder


def test_advertisements_are_made_and_withdrawn(broker_at: BrokerProcess) -> None:
    feed = ["--identity", "feed"]
    assert broker_at.run("advertise", "x > 0", *feed) == (0, "", "advertised at a\n")
    withdrawn = broker_at.run("advertise", "x > 0", *feed, "--withdraw")
    assert withdrawn == (0, "", "withdrawn at a\n")


def test_what_is_wrong_is_said(folder: Folder, broker_at: BrokerProcess) -> None:
    for arguments, message in [
        (["x > 0"], "--identity is needed"),
        (["x >", "--identity", "feed"], "a value must follow"),
        (["y > 7", "--identity", "feed", "--withdraw"], "has no advertisement that"),
    ]:
        ran = folder.run("advertise", "--broker", broker_at.url, *arguments)
        assert ran.code == 2
        assert message in ran.err
