from __future__ import annotations

from support.broker_process import BrokerProcess
from support.command_line import Folder


def test_a_durable_subscription_is_changed_while_its_subscriber_is_away(
    broker_at: BrokerProcess,
) -> None:
    durable = ["sub", "u < :a", "--durable", "--identity", "ann", "--name", "n", "--count", "1"]
    process = broker_at.start(*durable, "--param", "a=10")
    assert process.stderr is not None
    process.stderr.readline()
    broker_at.run("pub", '{"u": 1}', "--confirm")
    assert process.communicate(timeout=60)[0].endswith("u = 1\n")
    code, _, err = broker_at.run("update", "n", "a=100", "--identity", "ann")
    assert (code, err) == (0, "'n' is in force as version 2\n")
    broker_at.run("pub", '{"u": 50}', "--confirm")
    code, out, _ = broker_at.run(*durable, "--param", "a=100")
    assert (code, out.endswith("u = 50\n")) == (0, True)


def test_what_is_wrong_is_said(folder: Folder, broker_at: BrokerProcess) -> None:
    for arguments, message in [
        (["n", "a=1"], "--identity is needed"),
        (["n", "--identity", "eve"], "give PARAM=VALUE, --filter, or both"),
        (["n", "a=1", "--identity", "eve"], "'eve' has no subscription 'n'; it has none"),
    ]:
        ran = folder.run("update", "--broker", broker_at.url, *arguments)
        assert ran.code == 2
        assert message in ran.err
