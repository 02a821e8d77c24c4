<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/** An order that was sent to a task worker, and the response: one request of HTTP/1.0, which ends with the connection. */
final class Connection
{
    private const CONNECT_SECONDS = 5.0;
    private const CHUNK = 1 << 16;

    private string $received = '';

    /** @param resource $stream */
    private function __construct(private readonly mixed $stream, public readonly string $order)
    {
    }

    /** @throws \RuntimeException if the server does not accept it */
    public static function open(string $socket, string $order): self
    {
        $stream = @stream_socket_client("unix://$socket", $number, $why, self::CONNECT_SECONDS);
        if ($stream === false) {
            throw new \RuntimeException("The task workers cannot be reached at $socket: $why.");
        }
        $request = 'POST ' . Order::PATH . " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            . 'Content-Length: ' . \strlen($order) . "\r\n\r\n$order";
        if (@fwrite($stream, $request) !== \strlen($request)) {
            throw new \RuntimeException("The task workers at $socket do not accept a task.");
        }
        stream_set_blocking($stream, false);

        return new self($stream, $order);
    }

    /**
     * Reads until all of them have their responses.
     *
     * @param array<array-key, self> $connections
     * @param int                    $until       hrtime() at which to give up
     *
     * @return bool whether all have their responses
     */
    public static function await(array $connections, int $until): bool
    {
        while ($connections !== []) {
            $left = $until - hrtime(true);
            if ($left <= 0) {
                return false;
            }
            $ready = array_map(static fn (self $connection): mixed => $connection->stream, $connections);
            $none = null;
            // False: interrupted by a signal.
            if (@stream_select($ready, $none, $none, intdiv($left, 1_000_000_000), intdiv($left, 1000) % 1_000_000) === false) {
                continue;
            }
            foreach (array_keys($ready) as $key) {
                if ($connections[$key]->read()) {
                    unset($connections[$key]);
                }
            }
        }

        return true;
    }

    /** Returns true if the response has ended. */
    private function read(): bool
    {
        $this->received .= (string) fread($this->stream, self::CHUNK);

        return feof($this->stream);
    }

    public function status(): int
    {
        return (int) substr($this->received, \strlen('HTTP/1.1 '), 3);
    }

    public function body(): string
    {
        return explode("\r\n\r\n", $this->received, 2)[1] ?? '';
    }
}
