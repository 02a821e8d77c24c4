<?php

declare(strict_types=1);

namespace Howdah\Runtime;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Runs a PSR-15 handler for one request after the other; needs no framework:
 *
 *     (new Howdah\Runtime\Psr15Loop($handler))->run();
 */
final class Psr15Loop
{
    /** Bytes of a body that are printed at once. */
    private const PIECE = 65536;

    private readonly ServerRequests $requests;

    public function __construct(
        private readonly RequestHandlerInterface $handler,
        private readonly Loop $loop = new Loop(),
        ?ServerRequests $requests = null,
    ) {
        $this->requests = $requests ?? ServerRequests::withInstalledFactory();
    }

    /** @return int requests handled */
    public function run(): int
    {
        return $this->loop->run(fn () => self::send($this->handler->handle($this->requests->fromGlobals())));
    }

    private static function send(ResponseInterface $response): void
    {
        $reason = $response->getReasonPhrase();
        header(rtrim("HTTP/{$response->getProtocolVersion()} {$response->getStatusCode()} $reason"), true, $response->getStatusCode());
        foreach ($response->getHeaders() as $name => $values) {
            foreach ($values as $index => $value) {
                // The first replaces the value that PHP sets automatically (Content-Type); cookies of a session stay.
                header("$name: $value", $index === 0 && strcasecmp((string) $name, 'Set-Cookie') !== 0);
            }
        }
        $body = $response->getBody();
        if ($body->isSeekable()) {
            $body->rewind();
        }
        while (!$body->eof()) {
            echo $body->read(self::PIECE);
        }
    }
}
