from __future__ import annotations

from random import Random

from tidegate.network.client.backoff import FIRST_S, LONGEST_S, Backoff


def test_delays_double_up_to_a_limit() -> None:
    backoff = Backoff(Random(1))
    for number in range(20):
        longest = min(LONGEST_S, FIRST_S * 2**number)
        assert longest / 2 <= backoff.delay_s() <= longest
    backoff.reset()
    assert backoff.delay_s() <= FIRST_S


def test_the_broker_may_ask_for_more() -> None:
    assert Backoff(Random(1)).delay_s(3.0) == 3.0
