<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle;

use Symfony\Component\HttpKernel\Event\RequestEvent;

/** When Symfony began with the request, and how many requests this application has begun since it was booted. */
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

    /** Seconds since the epoch; null before the first request. */
    public function began(): ?float
    {
        return $this->began;
    }

    public function requests(): int
    {
        return $this->requests;
    }
}
