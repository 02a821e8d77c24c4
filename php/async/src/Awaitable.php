<?php

/* The type that await(), all(), any() and race() accept. Usually a task; applications can implement it, too. */

declare(strict_types=1);

namespace Howdah;

interface Awaitable
{
    public function isDone(): bool;

    /**
     * Waits for the result.
     *
     * @param float|null $timeout seconds; null means no limit
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed;
}
