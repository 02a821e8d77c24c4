<?php

declare(strict_types=1);

namespace Swoole\Http;

/** The handshake of a WebSocket connection. */
class Request
{
    /** The connection's id. */
    public string $fd = '';
    /** @var array<string, string>|null with lower-case names, like `$server` */
    public ?array $header = null;
    /** @var array<string, mixed>|null */
    public ?array $server = null;
    /** @var array<mixed>|null */
    public ?array $cookie = null;
    /** @var array<mixed>|null */
    public ?array $get = null;

    /** The current request, which has the fields of the handshake. */
    public static function ofHandshake(string $connection): self
    {
        $request = new self();
        $request->fd = $connection;
        $request->header = array_change_key_case(getallheaders());
        $request->server = array_change_key_case($_SERVER);
        $request->cookie = $_COOKIE ?: null;
        $request->get = $_GET ?: null;

        return $request;
    }
}
