#!/usr/bin/env python3
"""Measures connections that stay open: memory of idle ones, echo round trips, and fan-out of one update.

    lab/live.py --howdah target/dist/howdah [--swoole PATH/swoole.so] [--hub PATH/frankenphp] [--rounds 3]
                [--idle 10000] [--echo 64] [--messages 20000] [--fan-out 10000] [--updates 20] [--workers 2]

Starts each system for each measurement, in turn with the others, and prints one JSON object of medians. The peers
are Swoole's WebSocket server and the Mercure hub that FrankenPHP contains, without its history. The load comes from this
process, in one thread, so a rate is what both sides reach on one machine; the system's processor time per message does
not depend on that. Needs a limit of open files (ulimit -n) above twice the number of connections. Standard library only.
"""
import argparse, base64, concurrent.futures, hashlib, hmac, json, os, re, resource, selectors, shutil, socket, statistics
import struct, subprocess, sys, tempfile, time

KEY = "a secret of the lab, which has 32 bytes or more"
HUB = "/.well-known/mercure"
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
HOLD = """<?php
while (frankenphp_handle_request(function () {
    if (\\Howdah\\WebSocket::event() !== null) {
        $connection = \\Howdah\\WebSocket::accept();
        foreach ($connection as $message) {
            $connection->send($message);
        }
    }
})) {
}
"""
SETTINGS = """root = "."
listen = ["127.0.0.1:%d"]
admin = "unix:%s/admin.sock"
workers = %d
%s
[log]
access = "off"
[mercure]
publisher_key = "%s"
anonymous = true
[http]
max_connections = 60000
[[rule]]
path = "/ws"
websocket = "/chat.php"
"""
SWOOLE = """<?php
$server = new Swoole\\WebSocket\\Server('127.0.0.1', %d, %s);
$server->set(['worker_num' => %d, 'max_connection' => 60000, 'log_level' => SWOOLE_LOG_WARNING]);
$server->on('message', fn($server, $frame) => $server->push($frame->fd, $frame->data));
$server->on('request', function ($request, $response) use ($server) {
    // A copy, as others may run while one connection is sent to.
    foreach (iterator_to_array($server->connections, false) as $connection) {
        if ($server->isEstablished($connection)) {
            $server->push($connection, $request->get['text']);
        }
    }
    $response->end();
});
$server->start();
"""
CADDYFILE = """{
    admin off
    auto_https off
}
http://:%d {
    bind 127.0.0.1
    mercure {
        transport local
        publisher_jwt "%s"
        anonymous
    }
    respond 404
}
"""
HANDSHAKE = (b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SUBSCRIBE = f"GET {HUB}?topic=all HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()


def token():
    """A publisher's JWT."""
    encoded = lambda text: base64.urlsafe_b64encode(text).rstrip(b"=")
    signed = encoded(b'{"alg":"HS256","typ":"JWT"}') + b"." + encoded(b'{"mercure":{"publish":["*"]}}')
    return (signed + b"." + encoded(hmac.digest(KEY.encode(), signed, hashlib.sha256))).decode()


def tree(process):
    """The process and its descendants."""
    found = [process]
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children") as file:
            for child in file.read().split():
                found += tree(int(child))
    return found


class System:
    """A running server with its own site."""
    # Its response to the first request of the site's script.
    ready = 200

    def __init__(self, program, workers, reaches_all):
        self.reaches_all = reaches_all
        self.place = tempfile.mkdtemp(prefix="howdah-live-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        arguments = self.prepare(os.path.abspath(program), workers)
        self.process = subprocess.Popen(arguments, cwd=self.place, stdout=subprocess.DEVNULL,
                                        stderr=open(f"{self.place}/log", "w"))
        until = time.monotonic() + 30
        while True:
            try:
                if self.get("/chat.php?text=ready") == self.ready:
                    return
            except OSError:
                pass
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("the server does not start:\n" + open(f"{self.place}/log").read())
            time.sleep(0.05)

    def write(self, name, text):
        with open(f"{self.place}/{name}", "w") as file:
            file.write(text)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, request):
        with self.connect() as connection:
            connection.sendall(request.encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        return int(answer.split(b" ", 2)[1])

    def get(self, target):
        return self.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    def publish(self, request, text):
        """Sends an update to all connections that such a request has opened."""
        if request == HANDSHAKE:
            return self.get(f"/chat.php?text={text}")
        body = f"topic=all&data={text}"
        return self.send(f"POST {HUB} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token()}"
                         "\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n{body}")

    def memory(self):
        """Anonymous memory (PSS) of the system's processes, in bytes."""
        total = 0
        for process in tree(self.process.pid):
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += int(re.search(r"^Pss_Anon:\s+(\d+) kB", file.read(), re.M)[1]) * 1024
        return total

    def seconds(self):
        """Processor time of the system's processes."""
        total = 0
        for process in tree(self.process.pid):
            with open(f"/proc/{process}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.place, ignore_errors=True)


class Howdah(System):
    script = CHAT
    mode = ""

    def prepare(self, program, workers):
        self.write("chat.php", self.script)
        self.write("howdah.toml", SETTINGS % (self.port, self.place, workers, self.mode, KEY))
        return [program, "serve"] + (["--allow-root"] if os.getuid() == 0 else [])


class HowdahAsync(Howdah):
    """A coroutine holds each connection."""
    script = HOLD
    mode = 'mode = "async"\nscript = "chat.php"\nconcurrency = 10000'


class Swoole(System):
    def prepare(self, program, workers):
        # In its usual mode, a worker reaches only its own connections.
        mode = "SWOOLE_PROCESS" if self.reaches_all else "SWOOLE_BASE"
        self.write("server.php", SWOOLE % (self.port, mode, workers))
        return ["php", "-n", "-d", "memory_limit=-1", "-d", f"extension={program}", "server.php"]


class Hub(System):
    ready = 404

    def prepare(self, program, _workers):
        self.write("Caddyfile", CADDYFILE % (self.port, KEY))
        return [program, "run", "--adapter", "caddyfile", "--config", "Caddyfile"]


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
            "us_each": round(used / len(times) * 1e6, 1), **percentiles(times)}


def fan_out(server, count, updates, request):
    connections, _ = opened(server, count, request)
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
    time.sleep(1)
    publisher = concurrent.futures.ThreadPoolExecutor(1)
    times, used = [], server.seconds()
    for number in range(updates):
        text = f"update-{number:06}".encode()
        began, left = time.monotonic(), count
        # In a thread, as the response may arrive after the update.
        published = publisher.submit(server.publish, request, text.decode())
        while left:
            ready = selector.select(10)
            if not ready:
                sys.exit(f"an update did not reach {left} of {count} connections")
            for key, _ in ready:
                # Heartbeats arrive in between.
                if text in key.fileobj.recv(4096):
                    left -= 1
                    times.append(time.monotonic() - began)
        if published.result() != 200:
            sys.exit("cannot publish")
    used = server.seconds() - used
    for connection in connections:
        connection.close()
    return {"connections": count, "updates": updates, "us_each": round(used / len(times) * 1e6, 2),
            **percentiles(times)}


def median(results):
    """The median of each figure."""
    return {name: round(statistics.median(result[name] for result in results), 2) for name in results[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--howdah", required=True)
    parser.add_argument("--swoole")
    parser.add_argument("--hub")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--echo", type=int, default=64)
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--fan-out", type=int, default=10000)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    websocket = [(Howdah, given.howdah), (Swoole, given.swoole)]
    events = [(Howdah, given.howdah), (Hub, given.hub)]

    def measured(systems, measure, *arguments):
        # A separate server for each measurement, so that memory used by one does not count in the next.
        results = {}
        for number in range(given.rounds):
            for kind, program in systems[::-1] if number % 2 else systems:
                if program is None:
                    continue
                print(f"live: {measure.__name__}, {kind.__name__}, round {number + 1}", file=sys.stderr)
                server = kind(program, given.workers, measure is fan_out)
                try:
                    results.setdefault(kind.__name__.lower(), []).append(measure(server, *arguments))
                finally:
                    server.end()
        return {name: median(rounds) for name, rounds in results.items()}

    print(json.dumps({
        "idle_websocket": measured(websocket, idle, given.idle, HANDSHAKE),
        "idle_events": measured(events, idle, given.idle, SUBSCRIBE),
        "echo": measured([*websocket, (HowdahAsync, given.howdah)], echo, given.echo, given.messages),
        "fan_out_websocket": measured(websocket, fan_out, given.fan_out, given.updates, HANDSHAKE),
        "fan_out_events": measured(events, fan_out, given.fan_out, given.updates, SUBSCRIBE),
    }, indent=2))


if __name__ == "__main__":
    main()
