"""Trading: buy when the price falls below that of the last purchase, sell when it has risen.

The filters of the monitor's handlers use its parameters, and a purchase changes these thresholds.
Both change as one, so no quote is matched with the new price to buy and the old one to sell.
"""

import asyncio
import random

import tidegate


class Monitor(tidegate.Subscriber):
    """Buys low and sells high, one share at a time."""

    last_buy = tidegate.Parameter(100.0)
    target = tidegate.Parameter()

    def __init__(self):
        self.shares = 0
        self.cash = 0.0

    @tidegate.on("firm = 'IBM' and price < :last_buy")
    async def cheap(self, event):
        """Buy, and from then on only at a lower price."""
        price = event["price"]
        await self.order("buy ", price)
        self.set(last_buy=price, target=round(price * 1.03, 2))

    @tidegate.on("firm = 'IBM' and price >= :target")
    async def dear(self, event):
        """Sell all shares, and wait for a lower price."""
        price = event["price"]
        await self.order("sell", price, self.shares)
        self.set(last_buy=round(price * 0.98, 2), target=None)

    async def order(self, what, price, count=1):
        """Send an order to the exchange, which takes a moment."""
        await asyncio.sleep(0)
        sign = 1 if what == "buy " else -1
        self.shares += sign * count
        self.cash -= sign * count * price
        print(f"{what} {count} at {price:6.2f}   shares {self.shares}, cash {self.cash:8.2f}")


async def main():
    """A day at the exchange."""
    rng = random.Random(5)
    hub = tidegate.Hub()
    monitor = hub.attach(Monitor())
    prices = {"IBM": 100.0, "SUN": 40.0}
    for _ in range(400):
        firm = rng.choice(["IBM", "SUN"])
        prices[firm] = round(prices[firm] * (1 + rng.gauss(0, 0.004)), 2)
        await hub.publish({"firm": firm, "price": prices[firm]})
    await hub.join()
    print(f"worth {monitor.cash + monitor.shares * prices['IBM']:.2f} after {hub.updates} updates")


if __name__ == "__main__":
    asyncio.run(main())
