<?php

/** Functions of Howdah's SAPI, as sapi_functions.c registers them. For readers; nothing is generated from it. */

namespace {
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
    /** @alias \fastcgi_finish_request */
    function finish_request(): bool {}

    /**
     * Writes a line into the server's log, with the request's id. `$level` as in syslog(): 0 emergency to 7 debug;
     * others throw a ValueError. `$context` follows the message as JSON.
     */
    function log(string $message, int $level = 6, array $context = []): void {}

    /** "classic", later "worker", "snapshot", "async". */
    function mode(): string {}

    /** The request's id as in the logs, 16 hexadecimal digits; "" outside of a request. */
    function request_id(): string {}
}
