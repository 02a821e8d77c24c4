<?php

/* Exceptions and errors of the library. Exceptions can occur in a correct program; errors are bugs in it. */

declare(strict_types=1);

namespace Howdah;

/**
 * This coroutine, or the awaited task, was cancelled. After a cancellation every further wait throws again, except in
 * protect() and deferred functions.
 */
class CancelledException extends \Exception
{
}

/** The timeout of a wait has expired. */
class TimeoutException extends \Exception
{
}

/** The channel is closed: a value cannot be sent, or all values sent before have been received. */
class ChannelClosedException extends \Exception
{
}

/** The pool is closed. */
class PoolClosedException extends \Exception
{
}

/** The awaited task was ended by exit() or a fatal error, and has no result. */
class TaskExitedException extends \Exception
{
}

/** All tasks given to any() have failed. */
class CompositeException extends \Exception
{
    /** @param array<\Throwable> $errors with the keys of the tasks */
    public function __construct(private readonly array $errors)
    {
        $first = $errors[array_key_first($errors)];
        parent::__construct(\sprintf('All %d tasks failed, the first with: %s', \count($errors), $first->getMessage()), 0, $first);
    }

    /** @return array<\Throwable> */
    public function getErrors(): array
    {
        return $this->errors;
    }
}

/** Two coroutines used one connection at the same time. Its own trace is that of the second one. */
class ConcurrentUseError extends \Error
{
    /** Set by the shim (async/tools/stacks.c). */
    protected string $other = '';

    /** Returns the stack of the coroutine that was using the connection, formatted like getTraceAsString(). */
    public function getOtherTraceAsString(): string
    {
        return $this->other;
    }

    public function __toString(): string
    {
        return parent::__toString() . "\nThe coroutine that has the connection:\n$this->other";
    }
}

/**
 * A connection was returned to its pool with an open transaction, which was rolled back. Its own trace is that of the
 * return.
 */
class OpenTransactionError extends \Error
{
    /** @internal */
    public function __construct(string $message, private readonly string $taken, private readonly ?string $begun)
    {
        parent::__construct($message);
    }

    /** Returns where the connection was taken: file and line, or a whole trace with the setting `howdah.traces`. */
    public function getTakenTraceAsString(): string
    {
        return $this->taken;
    }

    /** Returns where the transaction was begun; null if a statement (`BEGIN`) began it. */
    public function getBegunTraceAsString(): ?string
    {
        return $this->begun;
    }

    public function __toString(): string
    {
        return parent::__toString() . Internal\Report::origin($this->taken, $this->begun);
    }
}

/** Nothing can wake this coroutine any more: all coroutines of the worker wait for each other. */
class DeadlockError extends \Error
{
}

/** A rule of the library was broken: unlocked by another coroutine, returned twice, called outside of a coroutine … */
class MisuseError extends \Error
{
}
