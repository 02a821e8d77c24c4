<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Howdah\Coroutine;
use Revolt\EventLoop\CallbackType;

/** A callback registered with the event loop. */
final class Callback
{
    public bool $enabled = false;
    public bool $referenced = true;
    /** True if its request's run() waits for it. */
    public bool $counted = false;
    /** True if its next call must not be scheduled yet: one is scheduled, or is running and has not been suspended. */
    public bool $due = false;
    /** Number of times that it was enabled or disabled; calls scheduled for an earlier version are void. */
    public int $version = 0;
    public float $expiration = 0.0;
    /** The coroutine that waits for the stream. */
    public ?Coroutine $watcher = null;
    /** True while it waits in stream_select(). */
    public bool $selecting = false;

    /**
     * @param resource|null $stream
     */
    public function __construct(
        public readonly string $id,
        public readonly CallbackType $type,
        public ?\Closure $closure,
        public readonly Share $share,
        public readonly mixed $stream = null,
        public readonly int $signal = 0,
        public readonly float $interval = 0.0,
    ) {
    }
}
