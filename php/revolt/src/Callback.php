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
    /** True if run() of its request waits for it. */
    public bool $counted = false;
    /** Its next call is not to be arranged yet: one is arranged, or runs and has not been suspended. */
    public bool $due = false;
    /** Counts when it was enabled and disabled: what was arranged before is void. */
    public int $version = 0;
    public float $expiration = 0.0;
    /** Waits for the stream. */
    public ?Coroutine $watcher = null;
    /** It waits in stream_select(). */
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
