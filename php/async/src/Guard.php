<?php

/* Gives something back when it is let go: at the end of a block, by an exception, and by exit(), which runs destructors
 * but no `finally`. */

declare(strict_types=1);

namespace Howdah\Internal;

final class Guard
{
    /** @param \Closure(): void|null $release must not wait */
    public function __construct(private ?\Closure $release)
    {
    }

    /** Gives it back now; the second time does nothing. */
    public function release(): void
    {
        $release = $this->release;
        $this->release = null;
        $release === null || $release();
    }

    /** Nothing is to be given back any more. */
    public function disarm(): void
    {
        $this->release = null;
    }

    public function __destruct()
    {
        $this->release();
    }
}
