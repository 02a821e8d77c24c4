"""Talks to an echo server at the address of the first argument: texts, bytes, long ones, and many at once."""

import asyncio
import sys

import websockets


async def one(url, number):
    async with websockets.connect(url, max_size=None) as connection:
        for message in [f"hello {number}", b"\x00\xff", "", "x" * 70_000, b"y" * 2_000_000]:
            await connection.send(message)
            assert await connection.recv() == message
        await (await connection.ping())


async def main():
    await asyncio.gather(*(one(sys.argv[1], number) for number in range(10)))
    print("all came back")


asyncio.run(main())
