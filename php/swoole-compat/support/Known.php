<?php

declare(strict_types=1);

namespace Howdah\SwooleCompat;

use Howdah\Coroutine;
use Howdah\Internal\WaitQueue;
use Swoole\Coroutine\Context;

/** A coroutine that is known to Swoole's functions. */
final class Known
{
    public readonly float $began;
    /** The queue where it waits between yield() and resume(). */
    public readonly WaitQueue $line;
    private ?Context $context = null;

    public function __construct(public readonly Coroutine $coroutine, public readonly int $parent)
    {
        $this->began = WaitQueue::now();
        $this->line = new WaitQueue();
    }

    public function context(): Context
    {
        return $this->context ??= new Context();
    }
}
