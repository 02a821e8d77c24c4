<?php

/* A connection as its pool sees it. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;

final class PooledConnection
{
    public ?object $connection = null;
    public readonly ConnectionState $state;
    public readonly float $born;
    /** When it was last known to be alive. */
    public float $seen;
    /** The coroutine that has taken it. */
    public ?Coroutine $holder = null;

    public function __construct()
    {
        $this->state = new ConnectionState();
        $this->born = $this->seen = WaitQueue::now();
    }
}
