#!/usr/bin/env python3
"""Measures connections that stay open: memory of idle ones, echo round trips, and fan-out of one update.

    lab/live.py --howdah target/dist/howdah [--idle 10000] [--echo 64] [--messages 20000] [--fan-out 10000] [--updates 20]

Starts a server with its own site on a free port, and prints one JSON object. The load comes from this process, in
one thread, so a rate is what both sides reach on one machine; the server's processor time per message does not depend on
that. Needs a limit of open files (ulimit -n) above twice the number of connections. Standard library only.
"""
import argparse, base64, json, os, re, resource, selectors, shutil, socket, struct, subprocess, sys, tempfile, time

CHAT = """<?php
$event = \\Howdah\\WebSocket::event();
if ($event === null) {
    \\Howdah\\WebSocket::publish('all', $_GET['text']);
} elseif ($event->type === 'open') {
    $event->subscribe('all');
} elseif ($event->type === 'message') {
    $event->send($event->data);
}
"""
SETTINGS = """root = "."
listen = ["127.0.0.1:%d"]
admin = "unix:%s/admin.sock"
workers = %d
[log]
access = "off"
[mercure]
publisher_key = "a secret of the lab, which has 32 bytes or more"
anonymous = true
[http]
max_connections = 60000
[[rule]]
path = "/ws"
websocket = "/chat.php"
"""
HANDSHAKE = (b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SUBSCRIBE = b"GET /.well-known/mercure?topic=all HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


class Server:
    """A running server with its own site."""

    def __init__(self, program, workers):
        self.place = tempfile.mkdtemp(prefix="howdah-live-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(f"{self.place}/chat.php", "w") as file:
            file.write(CHAT)
        with open(f"{self.place}/howdah.toml", "w") as file:
            file.write(SETTINGS % (self.port, self.place, workers))
        arguments = [program, "serve", "--allow-root"] if os.getuid() == 0 else [program, "serve"]
        self.process = subprocess.Popen(arguments, cwd=self.place, stderr=open(f"{self.place}/log", "w"))
        until = time.monotonic() + 30
        while True:
            try:
                if self.get("/chat.php?text=ready") == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("the server does not start:\n" + open(f"{self.place}/log").read())
            time.sleep(0.05)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def get(self, target):
        with self.connect() as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        return int(answer.split(b" ", 2)[1])

    def memory(self):
        """Bytes that the server's process alone has (Pss without what is in files)."""
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            return int(re.search(r"^Pss_Anon:\s+(\d+) kB", file.read(), re.M)[1]) * 1024

    def seconds(self):
        """Processor time of the server's process."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.place, ignore_errors=True)


def until_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(4096)
        if not piece:
            sys.exit(f"the server closed a connection: {head!r}")
        head += piece
    if not head.startswith((b"HTTP/1.1 101", b"HTTP/1.1 200")):
        sys.exit(f"the server refused a connection: {head[:200]!r}")


def opened(server, count, request):
    """So many connections, a hundred of which are opened at once."""
    connections, began = [], time.monotonic()
    while len(connections) < count:
        batch = [server.connect() for _ in range(min(100, count - len(connections)))]
        for connection in batch:
            connection.sendall(request)
        for connection in batch:
            until_head(connection)
        connections += batch
    return connections, count / (time.monotonic() - began)


def idle(server, count, request):
    warm, _ = opened(server, 100, request)
    for connection in warm:
        connection.close()
    time.sleep(1)
    before = server.memory()
    connections, rate = opened(server, count, request)
    time.sleep(2)
    each = (server.memory() - before) / count
    for connection in connections:
        connection.close()
    return {"connections": count, "bytes_each": round(each), "opened_per_second": round(rate)}


def frame(text):
    """A text frame whose mask is zero."""
    return struct.pack("!BBI", 0x81, 0x80 | len(text), 0) + text


def percentiles(seconds):
    seconds.sort()
    at = lambda share: round(seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1e6)
    return {"p50_us": at(0.5), "p99_us": at(0.99), "max_us": round(seconds[-1] * 1e6)}


def echo(server, count, messages):
    connections, _ = opened(server, count, HANDSHAKE)
    selector, message = selectors.DefaultSelector(), frame(b"x" * 100)
    times, sent = [], {}
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
    used, began = server.seconds(), time.monotonic()
    for connection in connections:
        sent[connection] = time.monotonic()
        connection.sendall(message)
    while len(times) < messages:
        for key, _ in selector.select():
            connection, missing = key.fileobj, 102
            while missing:
                missing -= len(connection.recv(missing))
            now = time.monotonic()
            times.append(now - sent[connection])
            sent[connection] = now
            connection.sendall(message)
    spent = time.monotonic() - began
    used = server.seconds() - used
    for connection in connections:
        connection.close()
    return {"connections": count, "per_second": round(len(times) / spent),
            "server_us_each": round(used / len(times) * 1e6, 1), **percentiles(times)}


def fan_out(server, count, updates, request):
    connections, _ = opened(server, count, request)
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
    time.sleep(1)
    times, used = [], server.seconds()
    for number in range(updates):
        text = f"update-{number:06}".encode()
        began, left = time.monotonic(), count
        if server.get("/chat.php?text=" + text.decode()) != 200:
            sys.exit("cannot publish")
        while left:
            ready = selector.select(10)
            if not ready:
                sys.exit(f"an update did not come to {left} of {count} connections")
            now = time.monotonic()
            for key, _ in ready:
                # Heartbeats arrive in between.
                if text in key.fileobj.recv(4096):
                    left -= 1
                    times.append(now - began)
    used = server.seconds() - used
    for connection in connections:
        connection.close()
    return {"connections": count, "updates": updates, "server_us_each": round(used / len(times) * 1e6, 2),
            **percentiles(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--howdah", required=True)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--echo", type=int, default=64)
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--fan-out", type=int, default=10000)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def measured(measure, *arguments):
        # A separate server for each measurement, so that memory used by one does not count in the next.
        server = Server(os.path.abspath(given.howdah), given.workers)
        try:
            return measure(server, *arguments)
        finally:
            server.end()

    print(json.dumps({
        "idle_websocket": measured(idle, given.idle, HANDSHAKE),
        "idle_events": measured(idle, given.idle, SUBSCRIBE),
        "echo": measured(echo, given.echo, given.messages),
        "fan_out_websocket": measured(fan_out, given.fan_out, given.updates, HANDSHAKE),
    }, indent=2))


if __name__ == "__main__":
    main()
