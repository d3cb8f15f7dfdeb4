"""Flooding rule: when a broker passes events on over all links without searching for them.

"It may be valuable to adopt a hybrid approach that varies between pure link matching and flooding
depending upon the probability that a given Maybe trit resolves to a Yes" (Gryphon, 6). Rules.

(1) Flooding saves the steps with which links are searched for; those for the broker's own
    subscribers remain. It costs *spurious* messages: to neighbours that would have got none.
(2) A spurious message costs as much as SPURIOUS_SEARCHES searches: it crosses the transport layer
    at both ends, each time for ten searches (Gryphon, 4.2: "an order of magnitude slower than the
    matching algorithm"), and the neighbour searches its own tree for it.
(3) A broker floods if it saves more than it costs, by the last SAMPLES samples.

From (2) and (3): at most the whole search is saved, so a broker floods only if there is less than
one spurious message in 21 events, that is, if for more than 95 % of its events every link that
could carry the event does. Below that it never floods, however long a search takes. As a spurious
message costs a neighbour no more than any other, and each broker judges by the events that come to
it, flooding does not spread to neighbours whose own links say No.

Theory of operation. One event in EVENTS_PER_SAMPLE is a sample, whether the broker floods or not.
For a sample the broker searches for the links and then for its own subscribers alone; the
difference in steps is what flooding saves, and the links that said No are what it costs. The rule
is applied after SAMPLES samples, three times 21: if none of that many had a spurious message, fewer
than one in 21 have one, with a confidence of 95 % (the rule of three). A broker that floods stops
at once when the samples so far have more spurious messages than any saving is worth.

Nothing here depends on time or chance: the same events lead to the same decisions.
"""

from __future__ import annotations

TRANSPORT_SEARCHES = 10
"""How many searches take as long as one passage through the transport layer."""
SPURIOUS_SEARCHES = 2 * TRANSPORT_SEARCHES + 1
SAMPLES = 3 * SPURIOUS_SEARCHES
EVENTS_PER_SAMPLE = 16
"""So the second search of a sample adds at most a sixteenth to the work."""


class FloodingRule:
    """Whether a broker floods at present, and the samples that decide it."""

    def __init__(self) -> None:
        self.floods = False
        self._events = 0
        self._samples = 0
        self._spurious = 0
        self._steps = 0
        self._local_steps = 0

    def takes_sample(self) -> bool:
        """Count an event; returns whether it is a sample."""
        self._events += 1
        return self._events % EVENTS_PER_SAMPLE == 0

    def add_sample(self, steps: int, local_steps: int, spurious: int) -> None:
        """Add a sample: steps of a search with and without links, and links that said No."""
        self._samples += 1
        self._steps += steps
        self._local_steps += local_steps
        self._spurious += spurious
        too_many = self._spurious * SPURIOUS_SEARCHES > SAMPLES
        if self._samples == SAMPLES or (self.floods and too_many):
            saved = self._steps - self._local_steps
            steps_of_a_search = self._steps / self._samples
            cost = self._spurious * SPURIOUS_SEARCHES * steps_of_a_search
            self.floods = saved > cost and not too_many
            self._samples = self._spurious = self._steps = self._local_steps = 0
