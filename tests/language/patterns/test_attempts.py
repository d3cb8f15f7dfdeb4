from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.patterns.attempts import Attempt

patterns = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4)
streams = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), max_size=25)


def attempt_of(pattern: list[str], within: int | None) -> Attempt[str]:
    """An attempt at letters, each of one of those of its step."""
    return Attempt(len(pattern), within, lambda step, _, letter: letter in pattern[step])


@given(patterns, st.sampled_from([None, 0, 2, 9]), streams, st.integers(0, 25))
def test_what_it_holds_leads_to_where_it_is(
    pattern: list[str], within: int | None, stream: list[tuple[int, str]], cut: int
) -> None:
    """The state of an attempt is saved as its events, and restored by taking them."""
    times = [sum(gap for gap, _ in stream[: index + 1]) for index in range(len(stream))]
    events = list(zip(times, [letter for _, letter in stream], strict=True))
    first = attempt_of(pattern, within)
    for time_us, letter in events[:cut]:
        first.take(time_us, letter)
    restored = attempt_of(pattern, within)
    assert [match for each in first.held() for match in restored.take(*each)] == []
    assert (restored.satisfied, restored.passed) == (first.satisfied, first.passed)
    for each in events[cut:]:
        assert restored.take(*each) == first.take(*each)


def test_it_holds_nothing_after_a_match() -> None:
    attempt = attempt_of(["a", "b"], 5)
    assert attempt.take(0, "a") == []
    assert attempt.held() == [(0, "a")]
    assert attempt.take(1, "b") == [((0, "a"), (1, "b"))]
    assert attempt.held() == []
