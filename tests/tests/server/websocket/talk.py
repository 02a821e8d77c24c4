"""Talks to an echo server at the address in the first argument: texts, bytes, long messages, and many concurrently. With TLS, the
server must present the certificate in the second argument."""

import asyncio
import ssl
import sys

import websockets


async def one(url, number):
    trust = {"ssl": ssl.create_default_context(cafile=sys.argv[2])} if url.startswith("wss:") else {}
    async with websockets.connect(url, max_size=None, open_timeout=None, ping_interval=None, **trust) as connection:
        for message in [f"hello {number}", b"\x00\xff", "", "x" * 70_000, b"y" * 2_000_000]:
            await connection.send(message)
            assert await connection.recv() == message
        await (await connection.ping())


async def main():
    await asyncio.gather(*(one(sys.argv[1], number) for number in range(10)))
    print("all came back")


asyncio.run(main())
