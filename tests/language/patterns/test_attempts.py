from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.patterns.attempts import Attempt

patterns = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4)
streams = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), max_size=25)


def attempt_of(pattern: list[str], within_us: int | None) -> Attempt[str]:
    """An attempt whose events are letters; a step is the string of the letters that satisfy it."""
    return Attempt(len(pattern), within_us, lambda step, _, letter: letter in pattern[step])


@given(patterns, st.sampled_from([None, 0, 2, 9]), streams, st.integers(0, 25))
def test_events_to_replay_restore_the_state(
    pattern: list[str], within_us: int | None, stream: list[tuple[int, str]], cut: int
) -> None:
    """The state of an attempt is saved as its events, and restored by taking them."""
    times = [sum(gap for gap, _ in stream[: index + 1]) for index in range(len(stream))]
    events = list(zip(times, [letter for _, letter in stream], strict=True))
    first = attempt_of(pattern, within_us)
    for time_us, letter in events[:cut]:
        first.take(time_us, letter)
    restored = attempt_of(pattern, within_us)
    assert [match for each in first.events_to_replay() for match in restored.take(*each)] == []
    assert (restored.satisfied, restored.passed) == (first.satisfied, first.passed)
    for each in events[cut:]:
        assert restored.take(*each) == first.take(*each)


def test_events_that_match_no_step_are_not_kept() -> None:
    attempt = attempt_of(["a", "b"], 1_000)
    attempt.take(0, "a")
    for time_us in range(100):
        attempt.take(time_us, "c")
    assert attempt.passed == []
    assert attempt.events_to_replay() == [(0, "a")]
    assert attempt.take(200, "b") == [((0, "a"), (200, "b"))]


def test_nothing_is_kept_after_a_match() -> None:
    attempt = attempt_of(["a", "b"], 5)
    assert attempt.take(0, "a") == []
    assert attempt.events_to_replay() == [(0, "a")]
    assert attempt.take(1, "b") == [((0, "a"), (1, "b"))]
    assert attempt.events_to_replay() == []
