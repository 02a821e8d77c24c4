"""Echoes messages on the port in the first argument; prints a line when it listens."""

import asyncio
import sys

import websockets


async def echo(connection, _path=None):
    async for message in connection:
        await connection.send(message)


async def main():
    async with websockets.serve(echo, "127.0.0.1", int(sys.argv[1]), max_size=None):
        print("listening", flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
