<?php

declare(strict_types=1);

namespace Swoole\WebSocket;

use Howdah\WebSocket;
use Howdah\WebSocketEvent;
use Swoole\Http\Request;

/**
 * Calls the functions of a script that a `websocket` rule names, in every mode. Howdah listens and holds the connections:
 * address and settings have no effect. `$fd` is a connection's id, a string.
 *
 * @property-read \ArrayIterator<int, string> $connections the ids of the open connections
 */
class Server
{
    /** @var array<string, mixed> */
    public array $setting = [];
    /** @var array<string, callable> */
    private array $callbacks = [];

    public function __construct(
        public readonly string $host = '0.0.0.0',
        public readonly int $port = 0,
        public readonly int $mode = 0,
        public readonly int $sock_type = 0,
    ) {
    }

    /** @param array<string, mixed> $settings */
    public function set(array $settings): bool
    {
        $this->setting = $settings + $this->setting;

        return true;
    }

    /** @param string $event_name open, message, close or workerStart */
    public function on(string $event_name, callable $callback): bool
    {
        $name = strtolower($event_name);
        if (!\in_array($name, ['open', 'message', 'close', 'workerstart'], true)) {
            trigger_error("Swoole\WebSocket\Server under Howdah has no event '$event_name'", \E_USER_WARNING);

            return false;
        }
        $this->callbacks[$name] = $callback;

        return true;
    }

    /**
     * In the script of a request, handles the event that it carries. As a worker script, does so until the worker ends.
     */
    public function start(): bool
    {
        $this->call('workerstart', 0);
        if (\Howdah\request_id() !== '') {
            $this->respond();

            return true;
        }
        while (\Howdah\handle_request($this->respond(...))) {
        }

        return true;
    }

    /**
     * Sends a message, or closes the connection. For a message, returns true also if the connection has closed in the
     * meantime.
     */
    public function push(
        string $fd,
        Frame|string $data,
        int $opcode = WEBSOCKET_OPCODE_TEXT,
        int $flags = SWOOLE_WEBSOCKET_FLAG_FIN,
    ): bool {
        if ($data instanceof Frame) {
            [$data, $opcode] = [$data->data, $data->opcode];
        }
        if ($opcode === WEBSOCKET_OPCODE_CLOSE) {
            return $this->disconnect($fd);
        }
        if ($opcode === WEBSOCKET_OPCODE_TEXT || $opcode === WEBSOCKET_OPCODE_BINARY) {
            WebSocket::send($fd, $data, $opcode === WEBSOCKET_OPCODE_BINARY);
        }

        return true;
    }

    /** @param int $code others than 1000 and 3000 to 4999 become 1000 */
    public function disconnect(string $fd, int $code = SWOOLE_WEBSOCKET_CLOSE_NORMAL, string $reason = ''): bool
    {
        if (!WebSocket::exists($fd)) {
            return false;
        }
        WebSocket::close($fd, $code >= 3000 && $code <= 4999 ? $code : SWOOLE_WEBSOCKET_CLOSE_NORMAL, $reason);

        return true;
    }

    public function close(string $fd, bool $reset = false): bool
    {
        return $this->disconnect($fd);
    }

    public function exists(string $fd): bool
    {
        return WebSocket::exists($fd);
    }

    public function exist(string $fd): bool
    {
        return WebSocket::exists($fd);
    }

    public function isEstablished(string $fd): bool
    {
        return WebSocket::exists($fd);
    }

    /** @return array{websocket_status: int}|false */
    public function getClientInfo(string $fd): array|false
    {
        return WebSocket::exists($fd) ? ['websocket_status' => WEBSOCKET_STATUS_ACTIVE] : false;
    }

    /**
     * @param string|int $start_fd the last id of the call before; 0 at first
     *
     * @return list<string>|false false if none follows
     */
    public function getClientList(string|int $start_fd = 0, int $find_count = 10): array|false
    {
        $ids = array_map(strval(...), array_keys(WebSocket::connections()));
        sort($ids, \SORT_STRING);
        if ($start_fd !== 0) {
            $ids = array_filter($ids, static fn (string $id): bool => strcmp($id, (string) $start_fd) > 0);
        }

        return \array_slice($ids, 0, $find_count) ?: false;
    }

    /** @return list<string>|false */
    public function connection_list(string|int $start_fd = 0, int $find_count = 10): array|false
    {
        return $this->getClientList($start_fd, $find_count);
    }

    /** @return array{connection_num: int} */
    public function stats(): array
    {
        return ['connection_num' => WebSocket::count()];
    }

    public function __get(string $name): mixed
    {
        if ($name !== 'connections') {
            trigger_error('Undefined property: ' . self::class . "::\$$name", \E_USER_WARNING);

            return null;
        }

        return new \ArrayIterator(array_map(strval(...), array_keys(WebSocket::connections())));
    }

    public function __isset(string $name): bool
    {
        return $name === 'connections';
    }

    /** Handles the event of the current request; refuses a request that carries none. */
    private function respond(): void
    {
        $event = WebSocket::event();
        match ($event?->type) {
            'open' => $this->call('open', Request::ofHandshake($event->connection)),
            'message' => $this->call('message', self::frame($event)),
            'close' => $this->call('close', $event->connection, 0),
            default => self::upgradeRequired(),
        };
    }

    private function call(string $name, mixed ...$arguments): void
    {
        if (isset($this->callbacks[$name])) {
            ($this->callbacks[$name])($this, ...$arguments);
        }
    }

    private static function frame(WebSocketEvent $event): Frame
    {
        $frame = new Frame();
        $frame->fd = $event->connection;
        $frame->data = $event->data;
        $frame->opcode = $event->binary ? WEBSOCKET_OPCODE_BINARY : WEBSOCKET_OPCODE_TEXT;

        return $frame;
    }

    private static function upgradeRequired(): void
    {
        http_response_code(426);
        header('Upgrade: websocket');
    }
}
