<?php

/* The functions of the library: starting coroutines, waiting for them, timeouts, clean-up. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Deferred;
use Howdah\Internal\Gathering;
use Howdah\Internal\Members;
use Howdah\Internal\WaitQueue;

/**
 * Starts a coroutine. It begins when the current one waits, ends or has run for its time slice, and belongs to the
 * current request: it has the same superglobals, headers and output, and the request is complete when all its tasks
 * have ended. While the worker script starts, go() works like detach().
 */
function go(callable $fn, mixed ...$args): Task
{
    return Task::start($fn, $args);
}

/** Alias of go(). */
function async(callable $fn, mixed ...$args): Task
{
    return Task::start($fn, $args);
}

/** Starts a coroutine that belongs to the worker: no request waits for it, and it has no request's superglobals. */
function detach(callable $fn, mixed ...$args): Task
{
    return Task::start($fn, $args, detached: true);
}

/**
 * Waits for a result, or throws the task's error.
 *
 * @param float|null $timeout seconds
 *
 * @throws TimeoutException the task continues
 */
function await(Awaitable $awaitable, ?float $timeout = null): mixed
{
    return $awaitable->await($timeout);
}

/**
 * Waits for all tasks. The first error, or the timeout, cancels the rest and is thrown.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 *
 * @return array<mixed> their results, with the keys of $tasks
 */
function all(iterable $tasks, ?float $timeout = null): array
{
    $gathering = new Gathering($timeout);
    $results = [];
    try {
        foreach ($tasks as $key => $task) {
            $gathering->add($key, $task);
            $results[$key] = null;
        }
        while ($gathering->open() > 0) {
            [$key, $task] = $gathering->next();
            $results[$key] = $task->result();
        }
    } finally {
        $gathering->abandon();
    }

    return $results;
}

/**
 * Waits for the first success and cancels the rest.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 *
 * @throws CompositeException if all have failed
 */
function any(iterable $tasks, ?float $timeout = null): mixed
{
    $gathering = new Gathering($timeout);
    $errors = [];
    try {
        $gathering->addAll($tasks);
        while ($gathering->open() > 0) {
            [$key, $task] = $gathering->next();
            $error = $task->error();
            if ($error === null) {
                return $task->result();
            }
            $errors[$key] = $error;
        }
    } finally {
        $gathering->abandon();
    }
    throw $errors === [] ? new \ValueError('any() needs at least one task') : new CompositeException($errors);
}

/**
 * Waits for the first task to end, by success or error, and cancels the rest.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 */
function race(iterable $tasks, ?float $timeout = null): mixed
{
    $gathering = new Gathering($timeout);
    try {
        $gathering->addAll($tasks);
        if ($gathering->open() === 0) {
            throw new \ValueError('race() needs at least one task');
        }

        return $gathering->next()[1]->result();
    } finally {
        $gathering->abandon();
    }
}

/**
 * Calls $fn($item, $key) for each item, each call in a coroutine, $concurrency of them at a time. Items are taken as needed,
 * so a generator may yield any number. The first error cancels the rest and is thrown.
 *
 * @return array<mixed> the results, with the items' keys and in their order
 */
function map(iterable $items, callable $fn, int $concurrency = 16, ?float $timeout = null): array
{
    if ($concurrency < 1) {
        throw new \ValueError('map(): $concurrency must be at least 1');
    }
    $gathering = new Gathering($timeout);
    $results = [];
    $take = static function () use ($gathering, &$results): void {
        [$key, $task] = $gathering->next();
        $results[$key] = $task->result();
    };
    try {
        foreach ($items as $key => $item) {
            while ($gathering->open() >= $concurrency) {
                $take();
            }
            $results[$key] = null;
            $gathering->add($key, Task::start($fn, [$item, $key]));
        }
        while ($gathering->open() > 0) {
            $take();
        }
    } finally {
        $gathering->abandon();
    }

    return $results;
}

/** Waits without blocking other coroutines, as sleep() and usleep() also do. */
function delay(float $seconds): void
{
    (new WaitQueue())->wait(max(0.0, $seconds));
}

/** Lets all ready coroutines run. */
function suspend(): void
{
    // True is a wake-up meant for an earlier wait.
    while (Coroutine::park(0.0));
}

/**
 * Calls the function with a timeout, in a coroutine. When the timeout expires, that coroutine and those it has started are
 * cancelled, and when they have ended, a TimeoutException is thrown.
 *
 * @throws TimeoutException
 */
function timeout(float $seconds, callable $fn): mixed
{
    $members = new Members();
    $task = Task::start($fn, [], members: $members);
    try {
        return $task->await($seconds);
    } catch (TimeoutException $late) {
        if ($task->isDone()) {
            // The function itself has thrown it.
            throw $late;
        }
        throw new TimeoutException(\sprintf('Not finished within %g s', $seconds));
    } finally {
        if ($task->isDone()) {
            $members->dissolve(WaitQueue::coroutine()->data['scope'] ?? null);
        } else {
            $members->closed = true;
            $members->end();
        }
    }
}

/** Calls the function and delays cancellation until it has returned. For work that must not be left half done. */
function protect(callable $fn): mixed
{
    Coroutine::shield(true);
    try {
        return $fn();
    } finally {
        Coroutine::shield(false);
    }
}

/** Calls the function at the end of the current coroutine, however it ends; of several, the last one first. */
function defer(callable $fn): void
{
    Deferred::add($fn(...));
}

/** Calls the function when the client has its whole response. */
function after_response(callable $fn): void
{
    Coroutine::afterResponse($fn);
}

/** Returns the running task; null in the request's own coroutine and outside of coroutines. */
function current(): ?Task
{
    return Coroutine::current()?->data['task'] ?? null;
}

function in_coroutine(): bool
{
    return Coroutine::current() !== null;
}
