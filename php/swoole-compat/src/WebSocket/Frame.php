<?php

declare(strict_types=1);

namespace Swoole\WebSocket;

/** A message. Clients' messages arrive whole. */
class Frame
{
    /** The connection's id. */
    public string $fd = '';
    public string $data = '';
    public int $opcode = WEBSOCKET_OPCODE_TEXT;
    public int $flags = SWOOLE_WEBSOCKET_FLAG_FIN;
    public ?bool $finish = true;

    public function __toString(): string
    {
        return $this->data;
    }
}
