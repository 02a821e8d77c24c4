"""Talks to a script that echoes everything, at the address in the first argument; the server must present the certificate in the
second argument. Half of the connections negotiate compression."""

import asyncio
import ssl
import sys

import websockets


async def one(number):
    trust = {"ssl": ssl.create_default_context(cafile=sys.argv[2])}
    packs = "deflate" if number % 2 else None
    async with websockets.connect(sys.argv[1], max_size=None, open_timeout=None, ping_interval=None, compression=packs, **trust) as connection:
        assert bool(connection.extensions) == bool(packs)
        for message in [f"hello {number}", b"\x00\xff", "", "x" * 70_000, b"y" * 1_048_576, "\u00e4 \U0001f600"]:
            await connection.send(message)
            assert await connection.recv() == message
        await (await connection.ping())
        await connection.close(4001, "done")
        assert connection.close_code == 4001
    async with websockets.connect(sys.argv[1], open_timeout=None, ping_interval=None, compression=packs, **trust) as connection:
        await connection.send(b"z" * 1_048_577)
        try:
            await connection.recv()
        except websockets.ConnectionClosedError as error:
            assert error.rcvd.code == 1009, error


async def main():
    await asyncio.gather(*(one(number) for number in range(6)))
    print("all came back")


asyncio.run(main())
