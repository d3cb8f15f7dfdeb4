"""A game: each player sees a square that moves along with it.

A player runs straight on until it turns. Its filter describes the square as a function of time, so
nothing is sent while it runs; a turn changes the five parameters of the motion, as one. Monsters
appear here and there, and a player gets only the events of those it can see at that moment.
"""

import random
from datetime import UTC, datetime, timedelta

import tidegate

START = datetime(2026, 1, 1, 20, 0, tzinfo=UTC)
X, Y = ":x + :vx * (t - :turned)", ":y + :vy * (t - :turned)"


class Player(tidegate.Subscriber):
    """Runs from where it turned last, with a speed in metres per second in each direction."""

    x, y = tidegate.Parameter(0), tidegate.Parameter(0)
    vx, vy = tidegate.Parameter(0), tidegate.Parameter(0)
    turned = tidegate.Parameter(0)

    def __init__(self, name, x, y):
        self.name = name
        self.set(x=x, y=y)

    def place(self, t):
        """The position of the player at a time, in seconds."""
        return self.x + self.vx * (t - self.turned), self.y + self.vy * (t - self.turned)

    def turn(self, t, vx, vy):
        """Run in another direction from the present position."""
        x, y = self.place(t)
        self.set(x=x, y=y, vx=vx, vy=vy, turned=t)
        print(f"{t:4} s  {self.name} turns at {x},{y}: {vx:+} {vy:+}")

    @tidegate.on(f"x between {X} - 10 and {X} + 10 and y between {Y} - 10 and {Y} + 10")
    def appears(self, event):
        """Handle a monster that appears inside the square."""
        t = round((event.time - START).total_seconds())
        x, y = self.place(t)
        monster = f"{event['monster']} at {event['x']},{event['y']}"
        print(f"{t:4} s  {self.name} at {x},{y} sees a {monster}")


def main():
    """A minute of a game."""
    rng = random.Random(7)
    t = 0
    hub = tidegate.Hub(tidegate.Engine(clock=lambda: START + timedelta(seconds=t)))
    ann, bob = hub.attach(Player("Ann", 0, 0)), hub.attach(Player("Bob", 50, 50))
    turns = {0: (ann, 2, 1), 5: (bob, -1, 0), 30: (ann, 0, 1), 45: (bob, 0, -3)}
    for t in range(60):
        if t in turns:
            player, vx, vy = turns[t]
            player.turn(t, vx, vy)
        for monster in ("bat", "troll"):
            hub.publish_now({"monster": monster, "x": rng.randrange(80), "y": rng.randrange(80)})
    print(f"120 monsters, {hub.updates} updates")


if __name__ == "__main__":
    main()
