"""Uses WebSocket over HTTP/2 (RFC 8441) with a server on the port in the first argument, which must present the certificate in the
second one. The library h2 implements HTTP/2, the library websockets the frames of WebSocket; this file connects them.

    over_http2.py PORT CA talk PATH          messages of all sizes on several streams at once; prints "all came back"
    over_http2.py PORT CA ask PATH PROTOCOL  one extended CONNECT; prints its status, or "reset CODE"
    over_http2.py PORT CA settings PATH      prints the value of SETTINGS_ENABLE_CONNECT_PROTOCOL
    over_http2.py PORT CA reset PATH         opens a stream, prints what is said first, resets the stream, and stays
    over_http2.py PORT CA stay PATH          opens a stream, prints what is said first, and then how it ended
    over_http2.py PORT CA hold PATH STREAMS  for each number in a line of input, opens as many sockets, STREAMS on each
                                             connection; prints "held" when each has got "welcome"
    over_http2.py PORT CA frames PATH        for each line of input, `plain` or `packing`, a number of frames, and bytes
                                             in hexadecimal digits: opens a stream, sends the bytes, closes it after so many
                                             frames of the server (0: it does), and prints all that the server has sent
    over_http2.py PORT CA lazy PATH          as stay, without ever enlarging the initial window
"""

import os
import socket
import ssl
import struct
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

# In seconds; `make test-stress` slows everything down.
TIMEOUT = 600 if "HOWDAH_TEST_STRESS" in os.environ else 60
PORT, CA, SCENARIO, PATH = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
# The server's own sockets are for pages of the same origin.
ORIGIN = f"https://localhost:{PORT}" if SCENARIO == "hold" else "https://localhost"


class Connection:
    def __init__(self):
        context = ssl.create_default_context(cafile=CA)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", PORT), timeout=TIMEOUT)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        config = h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
        self.http = h2.connection.H2Connection(config)
        self.http.initiate_connection()
        self.streams = {}
        self.closed = False
        self.gives_room = True
        self.flush()
        while h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS not in self.http.remote_settings:
            self.turn()

    def flush(self):
        self.socket.sendall(self.http.data_to_send())

    def connect(self, path, protocol="websocket", more=()):
        number = self.http.get_next_available_stream_id()
        fields = [
            (":method", "CONNECT"),
            (":protocol", protocol),
            (":scheme", "https"),
            (":path", path),
            (":authority", f"localhost:{PORT}"),
            ("sec-websocket-version", "13"),
            ("origin", ORIGIN),
            *more,
        ]
        self.http.send_headers(number, fields)
        self.streams[number] = stream = Stream(self, number)
        self.flush()
        return stream

    def turn(self):
        """Receives data."""
        data = self.socket.recv(65536)
        if not data:
            self.closed = True
            return
        try:
            events = self.http.receive_data(data)
        except h2.exceptions.ProtocolError:
            # The library considers GOAWAY the end, and anything after it an error.
            self.closed = True
            return
        for event in events:
            stream = self.streams.get(getattr(event, "stream_id", None))
            if isinstance(event, h2.events.ResponseReceived):
                stream.fields = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h2.events.DataReceived):
                stream.data += event.data
                if self.gives_room:
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                stream.end = stream.end or "end"
            elif isinstance(event, h2.events.StreamReset):
                # After a complete response, a server may reset the stream without an error (RFC 9113 8.1).
                stream.end = stream.end or f"reset {h2.errors.ErrorCodes(event.error_code).name}"
        self.flush()


class Stream:
    def __init__(self, connection, number):
        self.connection, self.number = connection, number
        self.fields, self.data, self.end = None, bytearray(), None

    def status(self):
        while self.fields is None and self.end is None and not self.connection.closed:
            self.connection.turn()
        return self.fields[":status"] if self.fields else self.end

    def send(self, data):
        http = self.connection.http
        while data:
            room = min(http.local_flow_control_window(self.number), http.max_outbound_frame_size)
            if room == 0:
                self.connection.turn()
                continue
            http.send_data(self.number, data[:room])
            data = data[room:]
            self.connection.flush()

    def read(self, length):
        while len(self.data) < length and self.end is None and not self.connection.closed:
            self.connection.turn()
        data = bytes(self.data[:length])
        del self.data[:length]
        return data

    def line(self):
        line = b""
        while not line.endswith(b"\n"):
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return line.decode().rstrip("\n")

    def wait_for_end(self):
        while self.end is None and not self.connection.closed:
            self.connection.turn()
        return self.end or "closed"

    def send_message(self, opcode, payload):
        """A complete message in one frame, masked as required for clients (RFC 6455 5.2)."""
        mask = os.urandom(4)
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
        elif length < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
        key = (mask * (length // 4 + 1))[:length]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")
        self.send(head + mask + masked)

    def message(self):
        first, length = self.read(2)
        assert first & 0x80, "in one piece"
        if length == 126:
            (length,) = struct.unpack("!H", self.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.read(8))
        return first & 0x0F, self.read(length)


def talk(connection):
    streams = [connection.connect(PATH) for _ in range(4)]
    assert [stream.status() for stream in streams] == ["200"] * 4
    for stream in streams:
        left = [name for name in stream.fields if name in ("upgrade", "connection") or name.startswith("sec-websocket-a")]
        assert not left, left
    messages = [(1, b"hello"), (2, b"\x00\xff"), (1, b""), (1, b"x" * 70_000), (2, b"y" * 600_000)]
    for opcode, payload in messages:
        for stream in streams:
            stream.send_message(opcode, payload)
        for stream in streams:
            assert stream.message() == (opcode, payload), (opcode, len(payload))
    for stream in streams:
        # The server's close, and then the end of the stream.
        stream.send_message(8, struct.pack("!H", 1000))
        assert stream.message() == (8, struct.pack("!H", 1000))
        assert stream.wait_for_end() == "end"
    print("all came back")


def hold(first):
    connections, streams = [first], 0
    for line in sys.stdin:
        for _ in range(int(line)):
            if streams == int(sys.argv[5]):
                connections.append(Connection())
                streams = 0
            assert connections[-1].connect(PATH).message() == (1, b"welcome")
            streams += 1
        print("held", flush=True)


def complete(data):
    """The number of complete frames."""
    count, at = 0, 0
    while len(data) >= at + 10 or (len(data) >= at + 2 and data[at + 1] < 126):
        length, head = data[at + 1], 2
        if length == 126:
            length, head = struct.unpack_from("!H", data, at + 2)[0], 4
        elif length == 127:
            length, head = struct.unpack_from("!Q", data, at + 2)[0], 10
        at += head + length
        if len(data) < at:
            break
        count += 1
    return count


def frames(connection):
    for line in sys.stdin:
        kind, count, data = line.split(" ")
        more = [("sec-websocket-extensions", "permessage-deflate")] if kind == "packing" else []
        stream = connection.connect(PATH, more=more)
        assert stream.status() == "200"
        try:
            stream.send(bytes.fromhex(data.strip()))
        except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError):
            pass  # The server has seen a violation and ended the stream.
        while complete(stream.data) < int(count) and stream.end is None:
            connection.turn()
        if int(count):
            stream.send_message(8, struct.pack("!H", 1000))
        stream.wait_for_end()
        print(stream.data.hex(), flush=True)
        try:
            connection.http.reset_stream(stream.number, h2.errors.ErrorCodes.CANCEL)
            connection.flush()
        except h2.exceptions.ProtocolError:
            pass
        del connection.streams[stream.number]


connection = Connection()
if SCENARIO == "talk":
    talk(connection)
elif SCENARIO == "hold":
    hold(connection)
elif SCENARIO == "frames":
    frames(connection)
elif SCENARIO == "ask":
    print(connection.connect(PATH, sys.argv[5]).status())
elif SCENARIO == "settings":
    print(connection.http.remote_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL, 0))
else:
    connection.gives_room = SCENARIO != "lazy"
    stream = connection.connect(PATH)
    print(stream.status(), stream.line(), flush=True)
    if SCENARIO == "reset":
        connection.http.reset_stream(stream.number, h2.errors.ErrorCodes.CANCEL)
        connection.flush()
        # The connection stays open, so that the server reacts to the end of the stream.
        sys.stdin.read()
    else:
        print(stream.wait_for_end())
connection.socket.close()
