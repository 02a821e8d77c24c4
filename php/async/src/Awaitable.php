<?php

/* The type that await(), all(), any() and race() accept. Tasks are the usual ones; a class of the application may be another. */

declare(strict_types=1);

namespace Howdah;

interface Awaitable
{
    public function isDone(): bool;

    /**
     * Waits for the result.
     *
     * @param float|null $timeout seconds; null waits as long as it takes
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed;
}
