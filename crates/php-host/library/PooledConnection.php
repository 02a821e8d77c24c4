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
    /** @var Coroutine|null that has taken it; not typed, as PHP would look the class up at each assignment */
    public $holder = null;

    /** Where it was taken. */
    public string $taken = '';

    /** @param \Closure(self): void $forget makes the pool take it back */
    public function __construct(private readonly \Closure $forget)
    {
        $this->state = new ConnectionState();
        $this->born = $this->seen = WaitQueue::now();
    }

    /** Its coroutine has ended with it. Called where nothing can wait (async/core/coroutine_class.c). */
    public function forgotten(): void
    {
        ($this->forget)($this);
    }
}
