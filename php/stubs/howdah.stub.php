<?php

/**
 * Functions and classes that Howdah adds to PHP, for IDEs and static analysers; never run. `make generate` makes the shim's
 * tables of functions and methods from this file (howdah_arginfo.h); `@alias` and `@implementation-alias` name the
 * function that does the work.
 *
 * Names with `frankenphp` are FrankenPHP's: worker scripts written for it run unchanged.
 *
 * @generate-class-entries
 */

namespace {
    /**
     * Levels of frankenphp_log().
     *
     * @var int
     */
    const FRANKENPHP_LOG_LEVEL_DEBUG = -4;
    /** @var int */
    const FRANKENPHP_LOG_LEVEL_INFO = 0;
    /** @var int */
    const FRANKENPHP_LOG_LEVEL_WARN = 4;
    /** @var int */
    const FRANKENPHP_LOG_LEVEL_ERROR = 8;

    /**
     * Waits for the next request and calls `$callback` for it, without arguments. Once that has returned, the client has its
     * whole response; superglobals stay the request's until the next call, and the worker takes no other request before that.
     *
     * @return bool false when the script must end: the server stops or reloads, or the worker has reached its limits
     *
     * @throws RuntimeException outside of a worker script, and inside of `$callback`
     */
    function frankenphp_handle_request(callable $callback): bool {}

    /**
     * Sends the headers set so far: with a status of 100 to 199 as an informational response, after which they stay set for
     * the final one; with 200 to 599 as those of the final response, with this status.
     *
     * @throws ValueError for other values
     */
    function headers_send(int $status = 200): int {}

    /** Completes the response; the script continues, but its further output is dropped. False if it was already completed. */
    function fastcgi_finish_request(): bool {}

    /**
     * The state of the pool that runs this request, as in PHP-FPM.
     *
     * @return array<string, mixed>|false false in async mode, and in processes that the script has forked
     */
    function fpm_get_status(): array|false {}

    /** @alias fastcgi_finish_request */
    function frankenphp_finish_request(): bool {}

    /** @return array<string, string> the request's headers, "Accept-Language" => "…" */
    function apache_request_headers(): array {}

    /** @alias apache_request_headers */
    function getallheaders(): array {}

    /**
     * @return array<string, string>
     * @alias apache_request_headers
     */
    function frankenphp_request_headers(): array {}

    /** @return array<string, string> the headers set so far; of equal names the last one */
    function apache_response_headers(): array {}

    /**
     * @return array<string, string>
     * @alias apache_response_headers
     */
    function frankenphp_response_headers(): array {}

    /** Writes a line to the server's log, followed by `$context` as JSON. */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void {}

    /**
     * Publishes an update to the Mercure hub of the request's site.
     *
     * @param string|string[] $topics the canonical topic, then alternate ones
     * @param bool $private only authorized subscribers receive it
     * @param string|null $id null: a generated one
     * @param string|null $type the type of the event
     * @param int|null $retry milliseconds after which clients reconnect
     *
     * @return string the id
     *
     * @throws RuntimeException if the site has no hub
     * @throws ValueError for more than 1 MiB of data, and for topics, ids and types with control characters
     */
    function mercure_publish(string|array $topics, string $data = '', bool $private = false, ?string $id = null, ?string $type = null, ?int $retry = null): string {}
}

namespace Howdah {
    /**
     * @see \frankenphp_handle_request()
     * @implementation-alias frankenphp_handle_request
     */
    function handle_request(callable $callback): bool {}

    /**
     * @see \headers_send()
     * @implementation-alias headers_send
     */
    function headers_send(int $status = 200): int {}

    /**
     * @see \fastcgi_finish_request()
     * @implementation-alias fastcgi_finish_request
     */
    function finish_request(): bool {}

    /**
     * Writes a line to the server's log with the request's id, followed by `$context` as JSON.
     *
     * @param int $level as in syslog(): 0 emergency to 7 debug
     *
     * @throws \ValueError for other levels
     */
    function log(string $message, int $level = 6, array $context = []): void {}

    /**
     * Snapshot mode: takes the snapshot here; the code after the call runs in every request. Returns false if there is
     * nothing to take a snapshot of.
     */
    function snapshot(): bool {}

    /** Snapshot mode: runs `$callback` at the start of every request. No effect in other modes. */
    function on_restore(callable $callback): void {}

    /**
     * Snapshot mode: runs `$callback` once, after the last warm-up request and before the snapshot, to reset state that belongs
     * to a visitor. No effect in other modes.
     */
    function after_warmup(callable $callback): void {}

    /**
     * Runs `$connect`, which opens one connection and keeps it open. Snapshot mode: workers forked from the boot run it again,
     * and each has its own connection to MySQL, PostgreSQL or Redis in place of the boot's, so that they can share the boot.
     */
    function connect_each_worker(callable $connect): void {}

    /**
     * Snapshot mode: runs this request again on a worker that boots after its arrival, and does not return. Returns false if
     * that is impossible; the request then continues here.
     */
    function boot_again(string $why = ''): bool {}

    /**
     * Snapshot mode: sets a constant that a script has defined to this value, for example the start time of a request that the
     * boot or the warm-up has already defined. Returns false if there is no such constant, and in other modes.
     */
    function redefine(string $constant, int|float $value): bool {}

    /** @return string "classic", "worker", "snapshot" or "async" */
    function mode(): string {}

    /**
     * Reports the application's route of this request to the server, before the response begins. The warm-up of snapshot mode
     * learns one path for each route.
     */
    function route(string $name): void {}

    /** @return string the request's id as in the logs, 16 hexadecimal digits; "" outside of a request */
    function request_id(): string {}

    /**
     * WebSocket connections that the server holds. A rule (`websocket`) names the script that handles their events; these
     * functions work in every request of the same site.
     */
    final class WebSocket
    {
        /** Returns the event that this request carries; null in other requests. */
        public static function event(): ?WebSocketEvent {}

        /**
         * Async mode, in an "open" event: completes the response, which accepts the connection, and lets this coroutine hold it.
         * Its messages come here and not as events.
         *
         * @throws \Error in other modes and in other requests
         */
        public static function accept(): WebSocketConnection {}

        /**
         * Sends a message to a connection. No effect if it is closed.
         *
         * @throws \ValueError for a message of more than 1 MiB
         */
        public static function send(string $connection, string $data, bool $binary = false): void {}

        /**
         * Closes a connection after all messages that were sent before.
         *
         * @throws \ValueError for a code other than 1000 and 3000 to 4999, and for a reason of more than 123 bytes
         */
        public static function close(string $connection, int $code = 1000, string $reason = ''): void {}

        /**
         * Subscribes a connection to a channel: it receives all messages published from now on.
         *
         * @param string|null $after an id: first sends the kept messages that were published after the one with this id; all
         *     kept messages for "earliest" and for an unknown id
         * @param int|null $keep from now on at most this many messages wait for the client, and if it is too slow the oldest
         *     are dropped, whatever their channel; otherwise such a client loses its connection
         *
         * @throws \ValueError if $keep is not from 1 to 65536
         */
        public static function subscribe(string $connection, string $channel, ?string $after = null, ?int $keep = null): void {}

        public static function unsubscribe(string $connection, string $channel): void {}

        /** True if the connection is open on this server, and no close was ordered. Waits for the server's answer. */
        public static function exists(string $connection): bool {}

        /** The number of the site's connections on this server; with a channel, of those subscribed to it on all servers. */
        public static function count(?string $channel = null): int {}

        /**
         * The site's connections on this server, in any order; with a channel, those that are subscribed to it. At most
         * 10,000.
         *
         * @return array<string, string> the state of each connection by its id
         */
        public static function connections(?string $channel = null): array {}

        /**
         * Sends a message to every connection of the site that is subscribed to the channel, and to subscribers of the site's
         * Mercure hub whose tokens allow the topic with that name.
         *
         * @param string|null $id keeps the message under this id for connections that subscribe later
         */
        public static function publish(string $channel, string $data, bool $binary = false, ?string $id = null): void {}
    }

    /**
     * A WebSocket connection that a coroutine holds (async mode). Iteration gives the client's messages until the connection
     * closes.
     *
     * @implements \Iterator<int, string>
     * @strict-properties
     * @not-serializable
     */
    final class WebSocketConnection implements \Iterator
    {
        /** @var string the connection's id, for the functions of WebSocket in any request */
        public string $id;

        /** @var bool the last message received is binary */
        public bool $binary = false;

        /** @var int after the end the close code; 1006 if the connection broke off; 0 before */
        public int $code = 0;

        /** @var string after the end the reason */
        public string $reason = '';

        private function __construct() {}

        /**
         * Waits for the next message. The server does not read from a client whose messages are not received.
         *
         * @param float|null $timeout in seconds
         *
         * @return string|null null if the connection is closed
         *
         * @throws TimeoutException when the time is over
         * @throws CancelledException if the coroutine is cancelled
         * @throws ConcurrentUseError if another coroutine receives from the connection
         */
        public function receive(?float $timeout = null): ?string {}

        /**
         * Sends a message. Waits while the client is too slow.
         *
         * @return bool false if the connection is closed
         *
         * @throws \ValueError for a message of more than 1 MiB
         * @throws CancelledException if the coroutine is cancelled
         */
        public function send(string $data, bool $binary = false): bool {}

        /**
         * Closes the connection after the messages that were sent before. Without effect if it is closed. A connection whose
         * last reference goes is closed with 1000, after an exception with 1011.
         *
         * @throws \ValueError for a code other than 1000 and 3000 to 4999, and for a reason of more than 123 bytes
         */
        public function close(int $code = 1000, string $reason = ''): void {}

        public function current(): ?string {}

        public function key(): int {}

        public function next(): void {}

        public function rewind(): void {}

        public function valid(): bool {}
    }

    /**
     * An event of a WebSocket connection.
     *
     * @strict-properties
     * @not-serializable
     */
    final class WebSocketEvent
    {
        /** @var string "open", "message" or "close". A response to "open" with a status of 400 or more refuses the connection. */
        public string $type;

        /** @var string the connection's id */
        public string $connection;

        /** @var string the message; for "close" the reason */
        public string $data;

        /** @var bool whether the message is binary */
        public bool $binary;

        /** @var int for "close" the code; 1006 if the connection was lost */
        public int $code;

        /** @var string the value of the last setState(); "" before the first */
        public string $state;

        /** Sends a message to the connection. */
        public function send(string $data, bool $binary = false): void {}

        /** Closes the connection. */
        public function close(int $code = 1000, string $reason = ''): void {}

        /** @see WebSocket::subscribe() */
        public function subscribe(string $channel, ?string $after = null, ?int $keep = null): void {}

        public function unsubscribe(string $channel): void {}

        /**
         * Keeps a text of up to 4096 bytes with the connection, for its next events.
         *
         * @throws \ValueError for a longer one
         */
        public function setState(string $state): void {}
    }

    /**
     * The basis of the async library (async.stub.php). Applications use the library; this class is for drivers of other event
     * loops. Coroutines switch only in park(), join() and in calls of PHP that would block.
     *
     * @strict-properties
     * @not-serializable
     */
    final class Coroutine
    {
        /** @var array<string, mixed> data of the coroutine; it is released when the coroutine ends */
        public array $data = [];

        /** Starts a coroutine of the current request, or of none. It runs when the current one waits or ends. */
        public static function start(callable $function, bool $detached = false): Coroutine {}

        public static function current(): ?Coroutine {}

        /** Returns the main coroutine of the current request; null outside of any request. */
        public static function main(): ?Coroutine {}

        /**
         * Waits for wake().
         *
         * @return bool false if the timeout has expired
         *
         * @throws CancelledException if the coroutine is cancelled, or was before
         */
        public static function park(?float $seconds = null): bool {}

        /** Delays cancellation while on. Calls nest. */
        public static function shield(bool $on): void {}

        public static function afterResponse(callable $function): void {}

        /** Returns the number of coroutines in this process. */
        public static function count(): int {}

        /** Ends the coroutine's park(); if it is in none, the next one. */
        public function wake(): void {}

        /** Waits for the coroutine's end; false if the timeout has expired. */
        public function join(?float $seconds = null): bool {}

        public function cancel(string $why = ''): void {}

        /** Calls the function when the coroutine ends, also after exit(). */
        public function atEnd(callable $function): void {}

        public function isDone(): bool {}

        public function isCancelled(): bool {}

        public function id(): int {}

        /** @return array<array<string, mixed>> the stack where it waits */
        public function backtrace(): array {}
    }
}
