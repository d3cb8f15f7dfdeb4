"""Load shedding: the less bandwidth is free, the nearer an object must be to be reported.

`@max_bandwidth` and `@used_bandwidth` are variables that the operator of the hub sets. The filters
of all subscribers use them, so one assignment narrows all filters and another widens them again,
without an update of any subscription.
"""

import random

import tidegate


class Drone(tidegate.Subscriber):
    """Wants events of other objects in the air, at least of those that are near."""

    near = tidegate.Parameter(100)

    def __init__(self, near):
        self.near = near
        self.received = 0

    @tidegate.on("distance < :near * @max_bandwidth / @used_bandwidth")
    def other(self, event):
        """Count an object in the air."""
        self.received += 1
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
            drone.received = drone.furthest = 0
        for _ in range(300):
            hub.publish_now({"distance": rng.randrange(1000)})
        print(f"{name:<9} {used:3} of 100 Mbit/s used")
        for label, drone in [("careful", careful), ("bold", bold)]:
            bar = "#" * (drone.received // 5)
            print(f"  {label:<8} {drone.received:3} told, up to {drone.furthest:3} m  {bar}")
    print(f"{hub.updates} updates")


if __name__ == "__main__":
    main()
