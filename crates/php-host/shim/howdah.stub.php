<?php

/** Functions of Howdah's SAPI, as sapi/functions.c registers them. For readers; nothing is generated from it. */

namespace {
    /**
     * For worker scripts: waits for a request and calls `$callback` with none of its own arguments. False when the script
     * shall end.
     *
     * @throws RuntimeException outside of a worker script, and inside of a request
     */
    function frankenphp_handle_request(callable $callback): bool {}

    /** Sends the headers set so far: 100 to 199 as an interim answer, 200 to 599 as the answer's own head. */
    function headers_send(int $status = 200): int {}

    /** Writes a line into the server's log. Levels: the FRANKENPHP_LOG_LEVEL_* constants, -4, 0, 4 and 8. */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void {}

    /** @alias fastcgi_finish_request */
    function frankenphp_finish_request(): bool {}

    /** @alias apache_request_headers */
    function frankenphp_request_headers(): array {}

    /** @alias apache_response_headers */
    function frankenphp_response_headers(): array {}

    /** Completes the response; the script goes on. True for the call that did it, false for later ones. */
    function fastcgi_finish_request(): bool {}

    /** The request's headers, "Accept-Language" => "…". */
    function apache_request_headers(): array {}

    /** @alias apache_request_headers */
    function getallheaders(): array {}

    /** The headers set so far; of equal names the last one. */
    function apache_response_headers(): array {}
}

namespace Howdah {
    /** @alias \frankenphp_handle_request */
    function handle_request(callable $callback): bool {}

    /** @alias \headers_send */
    function headers_send(int $status = 200): int {}

    /** @alias \fastcgi_finish_request */
    function finish_request(): bool {}

    /**
     * Writes a line into the server's log, with the request's id. `$level` as in syslog(): 0 emergency to 7 debug;
     * others throw a ValueError. `$context` follows the message as JSON.
     */
    function log(string $message, int $level = 6, array $context = []): void {}

    /** "classic", later "worker", "snapshot", "async". */
    function mode(): string {}

    /**
     * Snapshot mode: takes the snapshot here; what follows runs in every request. True in a request; false where there is
     * nothing to take.
     */
    function snapshot(): bool {}

    /** Snapshot mode: `$callback` runs first in every request. */
    function on_restore(callable $callback): void {}

    /** Calls `$callback` once, after the last warm-up request of a worker script and before the snapshot. */
    function after_warmup(callable $callback): void {}

    /**
     * Snapshot mode, in a request of which nothing was sent: what the boot has read has changed. The worker ends, one that
     * boots now takes its place, and the request runs on a worker whose boot began after it arrived. Does not return then.
     * False where it cannot be given away: outside of requests and of snapshot mode, after the first output was sent, and
     * when it arrived before this worker's boot.
     */
    function boot_again(string $why = ''): bool {}

    /** The request's id as in the logs, 16 hexadecimal digits; "" outside of a request. */
    function request_id(): string {}
}
