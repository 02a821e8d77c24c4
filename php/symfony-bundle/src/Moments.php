<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle;

use Symfony\Component\HttpKernel\Event\RequestEvent;

/**
 * The time when Symfony began handling the request, and the number of requests that this application has begun since its
 * boot.
 */
final class Moments
{
    private ?float $began = null;
    private int $requests = 0;

    public function onRequest(RequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            $this->began = microtime(true);
            ++$this->requests;
        }
    }

    /** Returns seconds since the epoch; null before the first request. */
    public function began(): ?float
    {
        return $this->began;
    }

    public function requests(): int
    {
        return $this->requests;
    }
}
