"""An HTTP/3 client that shares no code with the server: aioquic, with QPACK in C.

    aioquic_client.py PORT CA SCENARIO [ARGUMENT…]

prints one JSON object and exits with 0; any failure is an exception and a different status.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import struct
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

HOST = "localhost"
# The address that the server listens on; `localhost` may resolve to ::1 first.
ADDRESS = "127.0.0.1"
PATIENCE = 60


class Response:
    """Data received for one request."""

    def __init__(self):
        self.heads = []
        self.body = bytearray()
        self.parts = []
        self.reset = None
        self.done = asyncio.Event()
        self.changed = asyncio.Event()

    def told(self):
        fields = self.heads[-1] if self.heads else []
        return {
            "status": next((int(value) for name, value in fields if name == b":status"), None),
            "fields": {name.decode(): value.decode() for name, value in fields},
            "length": len(self.body),
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "text": self.body[:4000].decode("latin-1"),
            "reset": self.reset,
        }


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.responses = {}
        self.closed = asyncio.Event()
        self.close_code = None

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.close_code = event.error_code
            self.closed.set()
            for response in self.responses.values():
                response.done.set()
                response.changed.set()
        if isinstance(event, StreamReset) and event.stream_id in self.responses:
            self.responses[event.stream_id].reset = event.error_code
            self.responses[event.stream_id].done.set()
            self.responses[event.stream_id].changed.set()
        for out in self.http.handle_event(event):
            response = self.responses.get(getattr(out, "stream_id", None))
            if response is None:
                continue
            if isinstance(out, HeadersReceived):
                response.heads.append(out.headers)
            if isinstance(out, DataReceived):
                response.body += out.data
                if out.data:
                    response.parts.append(out.data)
            response.changed.set()
            if out.stream_ended:
                response.done.set()

    def extended_connect(self, path, protocol="websocket"):
        """An extended CONNECT (RFC 9220); returns its stream and its response."""
        stream = self._quic.get_next_available_stream_id()
        head = [(b":method", b"CONNECT"), (b":protocol", protocol.encode()), (b":scheme", b"https")]
        head += [(b":authority", HOST.encode()), (b":path", path.encode())]
        head += [(b"sec-websocket-version", b"13"), (b"origin", f"https://{HOST}".encode())]
        self.responses[stream] = response = Response()
        self.http.send_headers(stream, head)
        self.transmit()
        return stream, response

    def request(self, method, path, fields=(), body=None, end=True):
        stream = self._quic.get_next_available_stream_id()
        head = [(b":method", method.encode()), (b":scheme", b"https"), (b":authority", HOST.encode())]
        head += [(b":path", path.encode())] + [(n.encode(), v.encode()) for n, v in fields]
        self.responses[stream] = Response()
        self.http.send_headers(stream, head, end_stream=end and body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=end)
        self.transmit()
        return self.responses[stream]

    async def ask(self, *args, **kwargs):
        response = self.request(*args, **kwargs)
        await asyncio.wait_for(response.done.wait(), PATIENCE)
        return response.told()

    async def move(self):
        """Continues from another port, as after a NAT rebinding."""
        loop = asyncio.get_running_loop()
        old = self._transport
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("::", 0))
        self._transport = transport
        old.abort()


def fields_of(arguments):
    return [tuple(argument.split("=", 1)) for argument in arguments]


async def get(client, path, *fields):
    return await client.ask("GET", path, fields_of(fields))


async def head(client, path):
    return await client.ask("HEAD", path)


async def post(client, path, length):
    body = bytes(at % 251 for at in range(int(length)))
    told = await client.ask("POST", path, [("content-type", "application/octet-stream")], body)
    return {**told, "sent_sha256": hashlib.sha256(body).hexdigest()}


async def many(client, path, number):
    responses = [client.request("GET", f"{path}?{at}") for at in range(int(number))]
    await asyncio.wait_for(asyncio.gather(*(response.done.wait() for response in responses)), PATIENCE)
    return {"texts": [response.told()["text"] for response in responses]}


async def stream(client, path):
    """Prints each part on arrival."""
    response = client.request("GET", path)
    while not response.done.is_set():
        response.changed.clear()
        while response.parts:
            print(response.parts.pop(0).decode().strip(), flush=True)
        await asyncio.wait_for(response.changed.wait(), PATIENCE)
    return response.told()


async def leave(client, path):
    """Closes the connection when the response's body has begun."""
    response = client.request("GET", path)
    while not response.parts:
        response.changed.clear()
        await asyncio.wait_for(response.changed.wait(), PATIENCE)
    return {}


async def move(client, path):
    before = await client.ask("GET", path)
    await client.move()
    await client.ask("GET", path)
    after = await client.ask("GET", path)
    return {"before": before["text"], "after": after["text"]}


async def raw(client, kind, payload):
    """Sends an arbitrary frame as the first one of a request."""
    stream = client._quic.get_next_available_stream_id()
    client.responses[stream] = response = Response()
    client._quic.send_stream_data(stream, encode_frame(int(kind), bytes.fromhex(payload)), end_stream=True)
    client.transmit()
    await asyncio.wait_for(response.done.wait(), PATIENCE)
    return {"reset": response.reset, "closed": client.close_code}


async def unread(client, path, length):
    """Sends a long body to a script that does not read it."""
    body = bytes(int(length))
    told = await client.ask("POST", path, [("content-length", length)], body)
    return {**told, "after": (await client.ask("GET", "/hello.php"))["text"]}


async def drain(client, path):
    """Waits for the server's shutdown: prints when the request runs, and how it and the connection end."""
    response = client.request("GET", path)
    print("running", flush=True)
    await asyncio.wait_for(response.done.wait(), PATIENCE)
    await asyncio.wait_for(client.closed.wait(), PATIENCE)
    return {**response.told(), "closed": client.close_code}


class Socket:
    """A WebSocket over a stream, of which only whole messages in one frame are understood."""

    def __init__(self, client, path):
        self.client = client
        self.stream, self.response = client.extended_connect(path)

    async def until(self, has_come):
        while not has_come() and not self.response.done.is_set():
            self.response.changed.clear()
            await asyncio.wait_for(self.response.changed.wait(), PATIENCE)
        assert has_come(), self.response.told()

    async def opened(self):
        await self.until(lambda: self.response.heads)
        return self.response.told()

    def send(self, opcode, payload):
        mask, length = os.urandom(4), len(payload)
        sizes = struct.pack("!B", 0x80 | length) if length < 126 else struct.pack("!BQ", 0x80 | 127, length)
        key = (mask * (length // 4 + 1))[:length]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")
        self.client.http.send_data(self.stream, bytes([0x80 | opcode]) + sizes + mask + masked, end_stream=False)
        self.client.transmit()

    async def take(self, length):
        await self.until(lambda: len(self.response.body) >= length)
        data = bytes(self.response.body[:length])
        del self.response.body[:length]
        return data

    async def message(self):
        first, length = await self.take(2)
        assert first & 0x80, "in one piece"
        if length >= 126:
            length = int.from_bytes(await self.take(2 if length == 126 else 8), "big")
        return first & 0x0F, await self.take(length)


async def talk(client, path):
    """Messages of all sizes on several streams at once, which an echo returns."""
    sockets = [Socket(client, path) for _ in range(4)]
    heads = [await socket.opened() for socket in sockets]
    messages = [(1, b"hello"), (2, b"\x00\xff"), (1, b""), (1, b"x" * 70_000), (2, b"y" * 600_000)]
    for opcode, payload in messages:
        for socket in sockets:
            socket.send(opcode, payload)
        for socket in sockets:
            assert await socket.message() == (opcode, payload), (opcode, len(payload))
    for socket in sockets:
        socket.send(8, struct.pack("!H", 1000))
        assert await socket.message() == (8, struct.pack("!H", 1000))
        await asyncio.wait_for(socket.response.done.wait(), PATIENCE)
    fields = sorted({name for head in heads for name in head["fields"] if not name.startswith(":")} & HANDSHAKE)
    resets = [socket.response.reset for socket in sockets]
    return {"status": [head["status"] for head in heads], "fields": fields, "resets": resets}


HANDSHAKE = {"upgrade", "connection", "sec-websocket-accept", "content-length"}


async def upgrade(client, path, protocol):
    """One extended CONNECT, and the value of SETTINGS_ENABLE_CONNECT_PROTOCOL."""
    _, response = client.extended_connect(path, protocol)
    await asyncio.wait_for(response.done.wait(), PATIENCE)
    return {**response.told(), "allowed": client.http.received_settings.get(8, 0)}


async def stay(client, path):
    """Opens a WebSocket, prints a line, and reports how the server has ended it."""
    socket = Socket(client, path)
    print((await socket.opened())["status"], flush=True)
    opcode, payload = await socket.message()
    socket.send(8, payload)
    await asyncio.wait_for(socket.response.done.wait(), PATIENCE)
    return {"opcode": opcode, "code": int.from_bytes(payload[:2], "big"), "reset": socket.response.reset}


async def hold(configuration, port, path, streams):
    """For each number in a line of input, opens as many WebSockets, `streams` on each connection, and waits for the
    "welcome" of each."""
    loop, clients, opened = asyncio.get_running_loop(), [], int(streams)
    async with contextlib.AsyncExitStack() as stack:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            for _ in range(int(line)):
                if opened == int(streams):
                    connection = connect(ADDRESS, port, configuration=configuration, create_protocol=Client)
                    clients.append(await stack.enter_async_context(connection))
                    opened = 0
                assert await Socket(clients[-1], path).message() == (1, b"welcome")
                opened += 1
            print("held", flush=True)
    return {}


class Refused(Exception):
    """The server has not processed the request and reports that: it may be retried."""


async def ask_once(client, path):
    response = client.request("GET", path)
    await asyncio.wait_for(response.done.wait(), PATIENCE)
    told = response.told()
    if told["reset"] == 0x10b or (client.close_code == 0x100 and told["status"] is None):
        raise Refused
    return told


async def load(configuration, port, path):
    """Sends request after request, on connections that last as long as the server keeps them, until standard input ends;
    prints each new response text."""
    seen, asked, connections = set(), 0, 0
    stop = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not stop.done():
        connections += 1
        async with connect(ADDRESS, port, configuration=configuration, create_protocol=Client) as client:
            try:
                while not stop.done() and not client.closed.is_set():
                    told = await ask_once(client, path)
                    assert told["status"] == 200, told
                    asked += 1
                    if told["text"] not in seen:
                        seen.add(told["text"])
                        print("seen", flush=True)
            except Refused:
                pass
    return {"asked": asked, "connections": connections, "seen": len(seen)}


async def early(configuration, port, *paths):
    """Two connections, the second of which sends a request before its handshake is complete."""
    tickets = []
    async with connect(ADDRESS, port, configuration=configuration, create_protocol=Client,
                       session_ticket_handler=tickets.append) as client:
        await client.ask("GET", paths[0])
        while not tickets:
            await client.ask("GET", paths[0])
    configuration.session_ticket = tickets[-1]
    async with connect(ADDRESS, port, configuration=configuration, create_protocol=Client, wait_connected=False) as client:
        asked = [client.request("GET", paths[0]), client.request("POST", paths[1], body=b"a=1")]
        await asyncio.wait_for(asyncio.gather(*(response.done.wait() for response in asked)), PATIENCE)
        taken = client._quic.tls.early_data_accepted
        later = await client.ask("POST", paths[1], body=b"a=1")
        return {"taken": taken, "get": asked[0].told(), "post": asked[1].told(), "later": later}


async def patient(configuration, port, path):
    """Prints a line when it has begun to connect, which may take a while."""
    making = connect(ADDRESS, port, configuration=configuration, create_protocol=Client, wait_connected=False)
    async with making as client:
        client.transmit()
        print("asked", flush=True)
        await asyncio.wait_for(client.wait_connected(), PATIENCE)
        return await get(client, path)


async def main(port, authority, scenario, *arguments):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=HOST)
    configuration.load_verify_locations(authority)
    if scenario == "load":
        return await load(configuration, int(port), *arguments)
    if scenario == "hold":
        return await hold(configuration, int(port), *arguments)
    if scenario == "patient":
        return await patient(configuration, int(port), *arguments)
    if scenario == "early":
        return await early(configuration, int(port), *arguments)
    async with connect(ADDRESS, int(port), configuration=configuration, create_protocol=Client) as client:
        return await globals()[scenario](client, *arguments)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
