"""Forks brokers and clients from a process that has imported everything and loaded the kernels.

A process that is killed again and again is there again within milliseconds. Commands come on stdin
as lines of JSON; each is answered by a line. All processes end with this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.history_clients import publish, subscribe
from tidegate.cli.network.logs import set_up_logs
from tidegate.language.events import Event
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire.event_batches import batch_of
from tidegate.network.wire.event_block import EventBlock
from tidegate.routing import messages as m
from tidegate.routing.batching.incoming import IncomingEvents, PublishedFrame
from tidegate.routing.broker import Broker
from tidegate.routing.strategies import strategy


async def serve(name: str, port: int, data: str, peers: list[int], **settings: Any) -> None:
    """Run a broker until it is killed, or gets SIGTERM."""
    addresses = tuple(PeerAddress("127.0.0.1", each) for each in peers)
    server = BrokerServer(
        BrokerSettings(name, port=port, data=Path(data), peers=addresses, **settings)
    )
    await server.start()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    waiting = [asyncio.create_task(server.wait()), asyncio.create_task(stopped.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await server.stop()


PROGRAMS: dict[str, Callable[..., Awaitable[None]]] = {
    "broker": serve,
    "publisher": publish,
    "subscriber": subscribe,
}


def load_kernels() -> None:
    """Have a broker do once what takes long the first time."""
    broker = Broker("warm", strategy("subscription"), begun_us=1, substrate="columnar")
    client = m.Client("c")
    for wanted in ("x < 3", "x >= 3 and y = 'a'"):
        broker.handle(m.Subscribe(wanted), client, 1)
    broker.handle(m.Subscribe("x < :n", "n", {"n": 3}, version=1), client, 1)
    broker.handle(m.Update("n", 2, {"n": 4}), client, 2)
    broker.handle(m.Publish(Event({"x": 1, "y": "a"})), client, 3)
    block = EventBlock.of([Event({"x": x, "y": "a"}) for x in range(3)])
    incoming = IncomingEvents(batch_of(block), [PublishedFrame(client, len(block), None)])
    broker.handle_events(incoming, 4)


def run(program: str, arguments: dict[str, Any], log: str) -> int:
    """Run a program in this process, which is a new one; returns its exit code."""
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, to in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(descriptor, to)
    set_up_logs("text", "info")
    try:
        asyncio.run(PROGRAMS[program](**arguments))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the log has it, and the exit code says so
        traceback.print_exc()
        return 1
    return 0


def answer(text: object) -> None:
    """Answer a command."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    load_kernels()
    children: set[int] = set()
    answer("ready")
    while line := sys.stdin.readline():
        command = json.loads(line)
        if (pid := command.get("wait")) is not None:
            ended, status = os.waitpid(pid, 0 if command["until_it_ends"] else os.WNOHANG)
            children.discard(ended)
            answer(os.waitstatus_to_exitcode(status) if ended else "runs")
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(run(command["program"], command["arguments"], command["log"]))
        children.add(pid)
        answer(pid)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
