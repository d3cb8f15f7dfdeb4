"""A process that writes to a store without end, run by tests that kill it or give it no room.

Run as ``python dying_store.py <folder> [<largest file in bytes>]``. Each transaction has an event,
a row of two queues, a position and a piece of state, which all have the same number; its number is
printed once it is on disk. If there is no room, prints the error, acknowledges everything in one
queue, and prints whether that worked.
"""

from __future__ import annotations

import resource
import sys
from concurrent.futures import Future
from pathlib import Path

from tidegate.errors import StoreFullError
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction

TOGETHER = 3
"""Transactions handed over at a time, so that there are groups."""


def write(store: Store, number: int) -> Future[None]:
    transaction = Transaction()
    position = store.next_position()
    body = b"%d" % number + b"." * (number % 2000)
    transaction.add_event(position, store.shape(b"shape %d" % (number % 5)), 0, b"header", body)
    for name in ("one", "two"):
        transaction.enqueue(store.queue("client", name), position, b"%d" % number)
    transaction.set_position("publisher", "p", 1, number)
    transaction.put_state("last", "", b"", b"%d" % number)
    return store.commit(transaction)


def main(folder: Path) -> None:
    store = Store(folder, "a")
    number = store.positions("publisher").get("p", (1, 0))[1]
    try:
        while True:
            futures = [write(store, number + 1 + more) for more in range(TOGETHER)]
            for future in futures:
                future.result()
                number += 1
                sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
    except StoreFullError as error:
        sys.stdout.write(f"full: {error}\n")
    queue = store.queue("client", "one")
    transaction = Transaction()
    last = store.read_queue(queue).last
    store.acknowledge(transaction, queue, last)
    try:
        store.commit(transaction).result()
        sys.stdout.write("acknowledged\n")
    except StoreFullError:
        sys.stdout.write("still full\n")
    store.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    main(Path(sys.argv[1]))
