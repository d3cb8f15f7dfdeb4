"""Group commit: one thread writes all transactions that wait, and synchronizes the disk once.

Rules.

(1) Transactions are written in the order in which they were handed over.
(2) A future is done only when its transaction is on disk; if it fails, nothing of it is.
(3) After a failure other than a full disk nothing more is written. It is not known then what the
    disk has, and a later fsync that succeeds would prove nothing about it.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from concurrent.futures import Future

from tidegate.errors import StoreError, StoreFullError
from tidegate.network.store.applying import QueueLengths, apply
from tidegate.network.store.commit_mark import CommitMark
from tidegate.network.store.schema import store_error
from tidegate.network.store.transaction import Transaction

# More in one commit would let the first of them wait too long, and take much memory in SQLite.
GROUP_MAX = 1_000

_Work = tuple[Transaction, "Future[None]"]


class GroupWriter:
    """The thread that writes to the database of a store."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        mark: CommitMark,
        commits: int,
        lengths: dict[int, int],
    ) -> None:
        self._connection = connection
        self._mark = mark
        self.commits = commits
        """The number of commits in the life of the store."""
        self.lengths = lengths
        """By queue: how many events it has on disk. Only the thread changes it."""
        self.failure: StoreError | None = None
        """Why nothing is written any more."""
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tidegate-store", daemon=True)
        self._thread.start()

    def submit(self, transaction: Transaction) -> Future[None]:
        """Hand over a transaction; the future is done when it is on disk."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # whoever gives up waiting does not stop the writer
        self._waiting.put((transaction, future))
        return future

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, ends = [first], False
            while len(group) < GROUP_MAX:
                try:
                    work = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if work is None:
                    ends = True
                    break
                group.append(work)
            self._write(group)
            if ends:
                return

    def _write(self, group: list[_Work]) -> None:
        error = self._commit([transaction for transaction, _ in group])
        if error is not None and self.failure is None and len(group) > 1:
            # An acknowledgement, which frees room, must not fail with the event beside it.
            for each in group:
                self._write([each])
            return
        for _, future in group:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _commit(self, transactions: list[Transaction]) -> StoreError | None:
        """Write transactions in one commit; returns what went wrong, if anything."""
        if self.failure is not None:
            return self.failure
        lengths: list[QueueLengths] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            lengths.extend(apply(self._connection, each) for each in transactions)
            self._connection.execute(
                "UPDATE meta SET value = ? WHERE key = 'commits'", (self.commits + 1,)
            )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            return self._failed(store_error(error, "the store cannot be written"))
        except (OverflowError, TypeError, ValueError) as error:  # a row that SQLite does not take
            self._roll_back()
            return self.failure or StoreError(f"the store cannot write a row: {error}")
        self.commits += 1
        for changed in lengths:
            for number, change in changed.items():
                self.lengths[number] = self.lengths.get(number, 0) + change
        try:
            self._mark.write(self.commits)
        except OSError as error:
            self.failure = StoreError(f"the store cannot be written: {error.strerror or error}")
        return None

    def _failed(self, failure: StoreError) -> StoreError:
        self._roll_back()
        if not isinstance(failure, StoreFullError):
            self.failure = failure
        return self.failure or failure

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            self.failure = StoreError(f"the store cannot be rolled back: {error}")
