"""A bad network between two programs: a TCP proxy that holds, delays, halves and refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

TO_SERVER, TO_CLIENT = 0, 1
CHUNK_BYTES = 1 << 16


class TcpProxy:
    """Passes bytes on between those who connect to it and a port of this machine."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._gates = (asyncio.Event(), asyncio.Event())
        for gate in self._gates:
            gate.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._halved = [False, False]
        self.delay_s = 0.0
        """Before each chunk of bytes."""
        self.refuses = False
        """Whether it closes each new connection at once."""
        self.passed = [0, 0]
        """Bytes passed on, to the server and to the client."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        self.reset()
        for pump in list(self._pumps):
            pump.cancel()
            with suppress(asyncio.CancelledError):
                await pump

    # -- faults ---------------------------------------------------------------------------------

    def hold(self, *ways: int) -> None:
        """Pass nothing on: the connection stays, and is silent."""
        for way in ways or (TO_SERVER, TO_CLIENT):
            self._gates[way].clear()

    def release(self) -> None:
        """Pass everything on again, with what was held."""
        for gate in self._gates:
            gate.set()

    def reset(self) -> None:
        """Break all connections; what is on its way is lost."""
        for writer in self._writers:
            writer.transport.abort()

    def cut(self) -> None:
        """Break all connections, and take no new ones."""
        self.refuses = True
        self.reset()

    def mend(self) -> None:
        """Take connections and pass everything on."""
        self.refuses, self.delay_s = False, 0.0
        self.release()

    def halve(self, way: int) -> None:
        """Break the connection in the middle of the next bytes that go one way."""
        self._halved[way] = True

    # -- bytes ----------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.refuses:
                raise ConnectionRefusedError
            there, back = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        for way, source, target in ((TO_SERVER, reader, back), (TO_CLIENT, there, writer)):
            pump = asyncio.create_task(self._pump(way, source, target, (writer, back)))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self,
        way: int,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, ...],
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(CHUNK_BYTES):
                await self._gates[way].wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if self._halved[way]:
                    self._halved[way] = False
                    target.write(data[: len(data) // 2])
                    await target.drain()
                    for writer in both:
                        writer.close()
                    break
                self.passed[way] += len(data)
                target.write(data)
                await target.drain()
        for writer in both:
            writer.close()
            self._writers.discard(writer)


@asynccontextmanager
async def proxy(to_port: int) -> AsyncIterator[TcpProxy]:
    made = TcpProxy(to_port)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
