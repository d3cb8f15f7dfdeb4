"""A marketplace: the lowest price that a shop accepts depends on its stock.

The shop gets only the bids that it would accept, and the fuller its warehouse, the lower they may
be. The stock is a parameter of its filter, so each sale raises the lowest price and each delivery
from the factory lowers it, without a new subscription.
"""

import random

import tidegate


class Shop(tidegate.Subscriber):
    """Sells lamps: the last one for at least 60, but for at least 41 if there are twenty."""

    stock = tidegate.Parameter(20)

    def __init__(self):
        self.earned = self.sold = 0

    @tidegate.on("item = 'lamp' and bid >= 61 - :stock")
    def bid(self, event):
        """Sell a lamp."""
        self.earned += event["bid"]
        self.sold += 1
        self.stock -= 1
        print(f"  {event['buyer']:<5} buys for {event['bid']}; {self.stock:2} left")


def main():
    """Four weeks of bids."""
    rng = random.Random(11)
    hub = tidegate.Hub()
    shop = hub.attach(Shop())
    for week in range(1, 5):
        if week > 1:
            shop.stock += 6
        print(f"week {week}: {shop.stock} lamps, from {61 - shop.stock} on")
        for _ in range(25):
            buyer = rng.choice(["Ada", "Ben", "Cleo", "Dan"])
            hub.publish_now({"item": "lamp", "bid": rng.randrange(30, 60), "buyer": buyer})
            hub.publish_now({"item": "chair", "bid": 99, "buyer": buyer})
    print(f"earned {shop.earned} for {shop.sold} lamps")


if __name__ == "__main__":
    main()
