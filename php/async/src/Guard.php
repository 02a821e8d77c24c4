<?php

/* Releases something when the guard is destroyed: at the end of a block, by an exception, and by exit(), which runs
 * destructors but no `finally`. */

declare(strict_types=1);

namespace Howdah\Internal;

final class Guard
{
    /** @param \Closure(): void|null $release must not wait */
    public function __construct(private ?\Closure $release)
    {
    }

    /** Releases it now; a second call does nothing. */
    public function release(): void
    {
        $release = $this->release;
        $this->release = null;
        $release === null || $release();
    }

    /** Prevents the release. */
    public function disarm(): void
    {
        $this->release = null;
    }

    public function __destruct()
    {
        $this->release();
    }
}
