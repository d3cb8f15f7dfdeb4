"""Highway traffic: cars get the events of jams ahead of them, wherever they are.

A car assigns its place ten times a second, but few of these assignments are sent: the hub has a
prediction of the place, and an update follows only when that is off by more than 50 metres. The car
itself knows its exact place, and drops events that do not match it.
"""

import random
from datetime import UTC, datetime, timedelta

import tidegate

START = datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
AHEAD_M = 2000
STEP_S = 0.1


class Car(tidegate.Subscriber):
    """Drives along and handles slow traffic ahead."""

    place = tidegate.Reckoned(0.0, tolerance=50)
    slow = tidegate.Parameter(60, damping=10)

    def __init__(self, name, place, speed):
        self.name, self.place, self.speed = name, place, speed
        self.slow = speed * 3.6 * 0.7

    @tidegate.on(f"m between :place and :place + {AHEAD_M} and kmh < :slow")
    def jam(self, event):
        """Traffic ahead is slower than this car; brake."""
        away = event["m"] - self.place
        print(f"  {event.time:%H:%M:%S}  {self.name}: {event['kmh']} km/h in {away:.0f} m")
        self.speed = max(15.0, self.speed * 0.8)
        self.slow = self.speed * 3.6 * 0.7


def main():
    """Five minutes on a road of 20 km with a sensor every 500 m."""
    rng = random.Random(2)
    now = START
    hub = tidegate.Hub(tidegate.Engine(clock=lambda: now))
    cars = [Car("red car", 0.0, 36.0), Car("blue van", 1500.0, 25.0), Car("truck", 6000.0, 22.0)]
    for car in cars:
        hub.attach(car)
    reports = events = 0
    for step in range(3000):
        now = START + timedelta(seconds=STEP_S * step)
        for car in cars:
            car.place += car.speed * rng.uniform(0.95, 1.05) * STEP_S
            reports += 1
        if step % 10 == 0:
            sensor = 500 * rng.randrange(40)
            jam = 8000 <= sensor <= 9000 and step > 1000
            kmh = rng.randrange(20, 40) if jam else rng.randrange(90, 130)
            hub.publish_now({"m": sensor, "kmh": kmh})
            events += 1
    for car in cars:
        print(f"{car.name}: {car.place / 1000:.1f} km, {car.speed * 3.6:.0f} km/h")
    print(f"{events} measurements; {reports} reports of places, {hub.updates} updates")


if __name__ == "__main__":
    main()
