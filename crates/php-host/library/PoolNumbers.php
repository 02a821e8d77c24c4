<?php

/* What a pool counts, for Pool::stats() and, by their names, for async/pools/pools.c. */

declare(strict_types=1);

namespace Howdah\Internal;

final class PoolNumbers
{
    /** Calls of get(). */
    public int $taken = 0;
    /** Those of them that had to wait in line, how long all together, and how many got nothing. */
    public int $waited = 0;
    public float $wait_seconds = 0.0;
    public int $timeouts = 0;
    public float $wait_max_seconds = 0.0;
    /** Connections opened and closed; failures of checks and resets. */
    public int $opened = 0;
    public int $closed = 0;
    public int $failed = 0;
    public int $open_failures = 0;
    /** Connections that came back only when their coroutine ended. */
    public int $forgotten = 0;
    /** Those that came back with an open transaction. */
    public int $open_transactions = 0;
}
