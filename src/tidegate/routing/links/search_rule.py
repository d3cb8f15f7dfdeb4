"""Search rule: whether a broker searches for the links of an event, and with how many searches.

"It may be valuable to adopt a hybrid approach that varies between pure link matching and flooding
depending upon the probability that a given Maybe trit resolves to a Yes" (Gryphon, 6). For an event
that may go on, a broker has three ways to find its links and its own subscribers:

    TOGETHER  one search of all filters finds both
    APART     one search of all filters finds the links, and one of its own filters the subscribers
    FLOOD     the event goes over all links; one search of its own filters finds the subscribers

Rules.

(1) Of TOGETHER and APART a broker takes the one with fewer steps. A search for links alone stops as
    soon as all are decided; one for both goes on until the last own subscriber is found. So APART
    is better where links are decided soon, and TOGETHER where one of them mostly says No.
(2) FLOOD saves the search for links. It costs *spurious* messages: to neighbours that would have
    got none. One costs as much as SPURIOUS_SEARCHES searches: it crosses the transport layer at
    both ends, each time for ten searches (Gryphon, 4.2: "an order of magnitude slower than the
    matching algorithm"), and the neighbour searches for it.
(3) A broker floods if it saves more than it costs, by the last SAMPLES samples.

From (2) and (3): at most the whole search is saved, so a broker floods only if there is less than
one spurious message in 21 events, that is, if for more than 95 % of its events every link that
could carry the event does. Below that it never floods, however long a search takes. As a spurious
message costs a neighbour no more than any other, and each broker judges by the events that come to
it, flooding does not spread to neighbours whose own links say No.

Theory of operation. One event in EVENTS_PER_SAMPLE is a sample, and of the first ones one in
EVENTS_PER_FIRST_SAMPLE. For it the broker makes all three searches, whatever its way is; the links
that said No are the spurious messages of flooding. The rules are applied after SAMPLES samples,
three times 21: if none of that many had a spurious message, fewer than one in 21 have one, with a
confidence of 95 % (the rule of three). A broker that floods stops at once when the samples so far
have more spurious messages than any saving is worth.

Nothing here depends on time or chance: the same events lead to the same decisions.
"""

from __future__ import annotations

from typing import NamedTuple

TRANSPORT_SEARCHES = 10
"""How many searches take as long as one passage through the transport layer."""
SPURIOUS_SEARCHES = 2 * TRANSPORT_SEARCHES + 1
SAMPLES = 3 * SPURIOUS_SEARCHES
EVENTS_PER_SAMPLE = 64
"""So the other two searches of a sample add at most a 32nd to the work."""
EVENTS_PER_FIRST_SAMPLE = 4
"""Until the rules are applied for the first time, so that a new broker finds its way soon."""


class Sample(NamedTuple):
    """What the three searches of an event have cost, or a sum of such."""

    together: int
    """Steps of the search for links and own subscribers."""
    links: int
    """Steps of the search for links alone."""
    own: int
    """Steps of the search for own subscribers alone."""
    spurious: int
    """Neighbours that flooding would have sent the event in vain."""


NOTHING = Sample(0, 0, 0, 0)


class SearchRule:
    """The way in which a broker searches at present, and the samples that decide it."""

    def __init__(self) -> None:
        self.floods = False
        self.searches_apart = False
        """Whether the way is APART, when the broker does not flood."""
        self._events_per_sample = EVENTS_PER_FIRST_SAMPLE
        self._events = 0
        self._samples = 0
        self._sum = NOTHING

    def takes_sample(self) -> bool:
        """Count an event; returns whether it is a sample."""
        self._events += 1
        return self._events % self._events_per_sample == 0

    def add_sample(self, sample: Sample) -> None:
        """Take a sample into account."""
        self._samples += 1
        self._sum = Sample(*(total + each for total, each in zip(self._sum, sample, strict=True)))
        too_many = self._sum.spurious * SPURIOUS_SEARCHES > SAMPLES
        if self._samples == SAMPLES or (self.floods and too_many):
            together, links, own, spurious = self._sum
            apart = links + own
            saved = min(together, apart) - own
            steps_of_a_search = together / self._samples
            self.floods = saved > spurious * SPURIOUS_SEARCHES * steps_of_a_search and not too_many
            self.searches_apart = apart < together
            self._samples, self._sum = 0, NOTHING
            self._events_per_sample = EVENTS_PER_SAMPLE
