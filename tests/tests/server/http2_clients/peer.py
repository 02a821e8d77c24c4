"""An HTTP/2 client that sends any frames, valid or not: frames by hyperframe, header blocks by hpack. For the cases of
`conformance.py`, whose first two arguments identify the server.
"""

import os
import socket
import ssl
import struct
import sys

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PORT, CA = int(sys.argv[1]), sys.argv[2]
# In seconds; `make test-stress` slows everything down.
TIMEOUT = 600 if "HOWDAH_TEST_STRESS" in os.environ else 60

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CODES = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
]
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
LARGEST = 2**31 - 1
# Default maximum size of a frame (6.5.2).
FRAME = 16384
ASK = b"are you?"


def frame(kind, flags, stream, payload=b""):
    """A frame that no library would create."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


GET = [(":method", "GET"), (":scheme", "https"), (":authority", f"localhost:{PORT}"), (":path", "/a.txt")]
POST = [(":method", "POST"), (":scheme", "https"), (":authority", f"localhost:{PORT}"), (":path", "/length.php")]
BIG = [*GET[:3], (":path", "/big.bin")]


class Client:
    def __init__(self, preface=True, settings=b""):
        context = ssl.create_default_context(cafile=CA)
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", PORT), timeout=TIMEOUT), server_hostname="localhost")
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.buffer = b""
        self.status, self.bodies, self.resets, self.ended = {}, {}, {}, set()
        self.goaway = None
        self.closed = False
        self.pings = 0
        self.settings_seen, self.acked = None, 0
        # Received body data, and window increments beyond the initial window, by stream.
        self.window, self.given = {}, {}
        if preface:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
            self.until(lambda: self.settings_seen is not None and self.acked > 0)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            # The server has ended the connection; its last frames can still be read.
            pass

    def block(self, fields):
        return self.encoder.encode(fields, huffman=False)

    def request(self, stream=1, fields=None, end=True, extra=b"", flags=END_HEADERS):
        self.send(frame(HEADERS, flags | (END_STREAM if end else 0), stream, self.block(fields or GET) + extra))

    def until(self, done):
        """Receives frames until the condition is true, or the connection has ended."""
        while not done() and not self.closed:
            while len(self.buffer) >= 9 and not done():
                one, length = Frame.parse_frame_header(memoryview(self.buffer)[:9])
                if len(self.buffer) < 9 + length:
                    break
                one.parse_body(memoryview(self.buffer)[9 : 9 + length])
                self.buffer = self.buffer[9 + length :]
                self.take(one)
            if done():
                return
            try:
                data = self.socket.recv(65536)
            except (ConnectionError, ssl.SSLError):
                data = b""
            self.closed = not data
            self.buffer += data

    def take(self, one):
        stream = one.stream_id
        if isinstance(one, HeadersFrame):
            assert "END_HEADERS" in one.flags, "the responses of these cases are small"
            fields = dict(self.decoder.decode(one.data))
            if not fields.get(":status", "").startswith("1"):
                self.status.setdefault(stream, fields.get(":status"))
        elif isinstance(one, DataFrame):
            self.bodies[stream] = self.bodies.get(stream, b"") + one.data
            self.window[stream] = self.window.get(stream, 0) + one.flow_controlled_length
        elif isinstance(one, RstStreamFrame):
            self.resets.setdefault(stream, CODES[one.error_code])
        elif isinstance(one, GoAwayFrame):
            self.goaway = self.goaway or CODES[one.error_code]
        elif isinstance(one, WindowUpdateFrame):
            self.given[stream] = self.given.get(stream, 0) + one.window_increment
        elif isinstance(one, PingFrame):
            self.pings += "ACK" in one.flags and bytes(one.opaque_data) == ASK
        elif isinstance(one, SettingsFrame):
            if "ACK" in one.flags:
                self.acked += 1
            else:
                self.settings_seen = dict(one.settings)
                self.send(frame(SETTINGS, ACK, 0))
        if "END_STREAM" in one.flags:
            self.ended.add(stream)

    def over(self):
        return self.goaway is not None or self.closed

    def reaction(self, stream=1):
        """Outcome of a stream, or of the connection. Frames are handled in order, so after the answer to a final PING nothing else
        arrives, unless a script is still running."""
        self.until(lambda: self.over() or stream in self.resets or stream in self.ended)
        if stream in self.resets and stream not in self.ended:
            return f"stream {self.resets[stream]}"
        if self.over():
            return self.end()
        return f"status {self.status.get(stream)}"

    def end(self):
        self.until(lambda: self.over())
        return f"connection {self.goaway or 'closed'}"

    def alive(self):
        """True if the connection still works."""
        self.pings = 0
        self.send(frame(PING, 0, 0, ASK))
        self.until(lambda: self.over() or self.pings > 0)
        return self.pings > 0

    def idle(self):
        return "ignored" if self.alive() else self.end()
