<?php

/**
 * What PHP offers under Howdah beyond PHP itself, for IDEs and static analysers; never run. `make generate` makes the
 * shim's tables of functions and methods from this file (howdah_arginfo.h); `@alias` and `@implementation-alias` name the
 * function that does the work.
 *
 * Names with `frankenphp` are FrankenPHP's: worker scripts written for it run as they are.
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
     * Waits for the next request and calls `$callback` for it, without arguments. When it returns, the client has its whole
     * answer; superglobals stay the request's until the next call, and the worker takes no other request before that.
     *
     * @return bool false when the script shall end: the server stops or reloads, or the worker has reached its limits
     *
     * @throws RuntimeException outside of a worker script, and inside of `$callback`
     */
    function frankenphp_handle_request(callable $callback): bool {}

    /**
     * Sends the headers set so far: with 100 to 199 as an interim answer, after which they stay set for the final one; with
     * 200 to 599 as the final answer's, with this status.
     *
     * @throws ValueError for other values
     */
    function headers_send(int $status = 200): int {}

    /** Completes the response; the script goes on, what it prints from then on is dropped. False if that was done before. */
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

    /** Writes a line into the server's log, `$context` behind it as JSON. */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void {}

    /**
     * Publishes an update to the Mercure hub of the request's site.
     *
     * @param string|string[] $topics the canonical topic, then alternate ones
     * @param bool $private only authorized subscribers get it
     * @param string|null $id a new one for null
     * @param string|null $type the type of the event
     * @param int|null $retry milliseconds after which clients come back
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
     * Writes a line into the server's log with the request's id, `$context` behind it as JSON.
     *
     * @param int $level as in syslog(): 0 emergency to 7 debug
     *
     * @throws \ValueError for other levels
     */
    function log(string $message, int $level = 6, array $context = []): void {}

    /**
     * Snapshot mode: takes the snapshot here; what follows runs in every request. False where there is nothing to take.
     */
    function snapshot(): bool {}

    /** Snapshot mode: `$callback` runs at the start of every request. Without effect elsewhere. */
    function on_restore(callable $callback): void {}

    /**
     * Snapshot mode: `$callback` runs once, after the last warm-up request and before the snapshot, to bring back what belongs to
     * a visitor. Without effect elsewhere.
     */
    function after_warmup(callable $callback): void {}

    /**
     * Snapshot mode: has this request run on a worker that has booted since, and does not return. False where that cannot be
     * done; the request goes on here then.
     */
    function boot_again(string $why = ''): bool {}

    /**
     * Snapshot mode: gives a constant that a script has defined this value, such as the time at which a request began where
     * the boot or the warm-up has defined it already. False where there is no such constant, and in other modes.
     */
    function redefine(string $constant, int|float $value): bool {}

    /** @return string "classic", "worker", "snapshot" or "async" */
    function mode(): string {}

    /**
     * Tells the server which route of the application responds to this request, before the response begins. The warm-up of
     * snapshot mode learns one path for each route.
     */
    function route(string $name): void {}

    /** @return string the request's id as in the logs, 16 hexadecimal digits; "" outside of a request */
    function request_id(): string {}

    /**
     * WebSocket connections that the server holds. A rule (`websocket`) names the script that gets their events; these functions
     * work in every request of the same site.
     */
    final class WebSocket
    {
        /** The event that this request is; null in other requests. */
        public static function event(): ?WebSocketEvent {}

        /**
         * Sends a message to a connection. Without effect if it is closed.
         *
         * @throws \ValueError for a message of more than 1 MiB
         */
        public static function send(string $connection, string $data, bool $binary = false): void {}

        /**
         * Closes a connection after the messages that were sent before.
         *
         * @throws \ValueError for a code other than 1000 and 3000 to 4999, and for a reason of more than 123 bytes
         */
        public static function close(string $connection, int $code = 1000, string $reason = ''): void {}

        /**
         * Sends the connection all messages that are published to the channel from now on.
         *
         * @param string|null $after first the messages that were published after the one with this id and are still kept; all
         *     that are kept for "earliest" and for an unknown id
         */
        public static function subscribe(string $connection, string $channel, ?string $after = null): void {}

        public static function unsubscribe(string $connection, string $channel): void {}

        /**
         * Sends a message to every connection of the site that subscribes to the channel, and to subscribers of the site's
         * Mercure hub whose tokens allow the topic of that name.
         *
         * @param string|null $id keeps the message under this id for connections that subscribe later
         */
        public static function publish(string $channel, string $data, bool $binary = false, ?string $id = null): void {}
    }

    /**
     * Something happened to a WebSocket connection.
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

        /** @var string the message; of "close" the reason */
        public string $data;

        /** @var bool the message is binary */
        public bool $binary;

        /** @var int of "close" the code; 1006 if the connection broke off */
        public int $code;

        /** @var string the value of the last setState(), "" before */
        public string $state;

        /** Sends a message to the connection. */
        public function send(string $data, bool $binary = false): void {}

        /** Closes the connection. */
        public function close(int $code = 1000, string $reason = ''): void {}

        /** @see WebSocket::subscribe() */
        public function subscribe(string $channel, ?string $after = null): void {}

        public function unsubscribe(string $channel): void {}

        /**
         * Keeps a text of up to 4096 bytes with the connection, for its next events.
         *
         * @throws \ValueError for a longer one
         */
        public function setState(string $state): void {}
    }

    /**
     * What the library of async mode (async.stub.php) is made of. Applications use that; this is for drivers of other
     * event loops. Switches happen in park(), join() and in calls of PHP that would block, nowhere else.
     *
     * @strict-properties
     * @not-serializable
     */
    final class Coroutine
    {
        /** @var array<string, mixed> what belongs to the coroutine; it goes when the coroutine ends */
        public array $data = [];

        /** Starts a coroutine of the current request, or of none. It runs when the current one waits or ends. */
        public static function start(callable $function, bool $detached = false): Coroutine {}

        public static function current(): ?Coroutine {}

        /** The own coroutine of the current request; null in those that belong to none. */
        public static function main(): ?Coroutine {}

        /**
         * Waits for wake().
         *
         * @return bool false when the time is over
         *
         * @throws CancelledException if the coroutine is cancelled, or was before
         */
        public static function park(?float $seconds = null): bool {}

        /** While on, cancellation is held back. Counts. */
        public static function shield(bool $on): void {}

        public static function afterResponse(callable $function): void {}

        /** Coroutines of this process. */
        public static function count(): int {}

        /** Ends the coroutine's park(), the next one if it is in none. */
        public function wake(): void {}

        /** Waits for the coroutine's end; false when the time is over. */
        public function join(?float $seconds = null): bool {}

        public function cancel(string $why = ''): void {}

        /** Calls the function when the coroutine ends, after exit() as well. */
        public function atEnd(callable $function): void {}

        public function isDone(): bool {}

        public function isCancelled(): bool {}

        public function id(): int {}

        /** @return array<array<string, mixed>> where it waits */
        public function backtrace(): array {}
    }
}
