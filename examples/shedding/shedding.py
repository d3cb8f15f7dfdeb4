"""Load shedding: the less bandwidth is free, the nearer something must be to be told.

`@max_bandwidth` and `@used_bandwidth` are variables of whoever runs the hub. They stand in the
filters of all subscribers, so one assignment by the operator narrows what everybody gets, and
another widens it again, and no subscription is touched.
"""

import random

import tidegate


class Drone(tidegate.Subscriber):
    """Wants to know of other things in the air, at least of those that are near."""

    near = tidegate.Parameter(100)

    def __init__(self, near):
        self.near = near
        self.told = 0

    @tidegate.on("distance < :near * @max_bandwidth / @used_bandwidth")
    def other(self, event):
        """Something is in the air."""
        self.told += 1
        self.furthest = max(getattr(self, "furthest", 0), event["distance"])


def main():
    """The same traffic on a quiet, a normal and a busy day."""
    hub = tidegate.Hub()
    careful, bold = hub.attach(Drone(100)), hub.attach(Drone(30))
    hub.engine.set_variables(max_bandwidth=100)
    for name, used in [("quiet", 10), ("normal", 40), ("busy", 80), ("overload", 160)]:
        hub.engine.set_variables(used_bandwidth=used)
        rng = random.Random(1)
        for drone in (careful, bold):
            drone.told = drone.furthest = 0
        for _ in range(300):
            hub.publish_now({"distance": rng.randrange(1000)})
        print(f"{name:<9} {used:3} of 100 Mbit/s used")
        for label, drone in [("careful", careful), ("bold", bold)]:
            bar = "#" * (drone.told // 5)
            print(f"  {label:<8} {drone.told:3} told, up to {drone.furthest:3} m  {bar}")
    print(f"{hub.updates} updates")


if __name__ == "__main__":
    main()
