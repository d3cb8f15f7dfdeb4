"""Tides: a harbour admits the ships whose draught is less than the depth, which rises and falls.

The filter has the depth as a sine of the time, so nothing is sent when the tide turns. When a storm
brings sand, the mean depth changes, and that is one update.
"""

import math
import random
from datetime import UTC, datetime, timedelta

import tidegate

START = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
SECONDS = 12.4 * 3600 / math.tau  # seconds per radian; a tide takes 12.4 hours


class Harbour(tidegate.Subscriber):
    """High water is two metres above the mean depth."""

    middle = tidegate.Parameter(7.0)

    def __init__(self):
        self.entered = 0

    @tidegate.on(f"draught < :middle + 2 * sin(t / {SECONDS})")
    def ship(self, event):
        """Let a ship in."""
        self.entered += 1
        print(f"  {event.time:%H:%M}  the {event['name']} comes in, {event['draught']} m")


def main():
    """A day at the harbour."""
    rng = random.Random(8)
    now = START
    hub = tidegate.Hub(tidegate.Engine(clock=lambda: now))
    harbour = hub.attach(Harbour())
    names = ["Alma", "Berta", "Clara", "Dora", "Elsa", "Frida"]
    for hour in range(24):
        if hour == 15:
            harbour.middle = 6.0
            print("a storm brings sand: the middle depth is 6 m")
        depth = harbour.middle + 2 * math.sin(hour * 3600 / SECONDS)
        print(f"{now:%H:%M}  {'~' * round(4 * depth)} {depth:.1f} m")
        for minute in sorted(rng.sample(range(60), 2)):
            ship = {"name": rng.choice(names), "draught": round(rng.uniform(4, 10), 1)}
            hub.publish_now(ship, time=now + timedelta(minutes=minute))
        now += timedelta(hours=1)
    print(f"{harbour.entered} of 48 ships came in; {hub.updates} update")


if __name__ == "__main__":
    main()
