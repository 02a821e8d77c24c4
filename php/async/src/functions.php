<?php

/* The functions of the library: starting coroutines, waiting for them, time limits, the end of things. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Deferred;
use Howdah\Internal\Gathering;
use Howdah\Internal\Members;
use Howdah\Internal\WaitQueue;

/**
 * Starts a coroutine. It begins when the current one waits, and belongs to the current request: same superglobals, headers
 * and output; the request is complete when all its tasks have ended. While the worker script starts: see detach().
 */
function go(callable $fn, mixed ...$args): Task
{
    return Task::start($fn, $args);
}

/** The same as go(). */
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
 * Waits for a result, and throws what the task has thrown.
 *
 * @param float|null $timeout seconds
 *
 * @throws TimeoutException the task goes on
 */
function await(Awaitable $awaitable, ?float $timeout = null): mixed
{
    return $awaitable->await($timeout);
}

/**
 * Waits for all tasks. The first error, like the end of the time, cancels the rest and is thrown.
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
 * Waits for the first end, success or error, and cancels the rest.
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
 * Calls $fn($item, $key) for each item, each call in a coroutine, $concurrency of them at a time. Items are taken as they
 * are needed, so a generator may have any number. The first error cancels the rest and is thrown.
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

/** Waits. sleep() and usleep() do as well. */
function delay(float $seconds): void
{
    (new WaitQueue())->wait(max(0.0, $seconds));
}

/** Lets the coroutines run that are ready. */
function suspend(): void
{
    // True is a wake-up meant for an earlier wait.
    while (Coroutine::park(0.0));
}

/**
 * Calls the function with a time limit, in a coroutine. When the time is over, that coroutine and those it has started by
 * then are cancelled, and when they have ended, a TimeoutException is thrown.
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
            // It is what the function has thrown.
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

/** Calls the function; cancellation is held back until it has returned. For what must not be left half done. */
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

/** Calls the function when the client has its whole answer. */
function after_response(callable $fn): void
{
    Coroutine::afterResponse($fn);
}

/** The task that runs; null in the request's own coroutine and outside of coroutines. */
function current(): ?Task
{
    return Coroutine::current()?->data['task'] ?? null;
}

function in_coroutine(): bool
{
    return Coroutine::current() !== null;
}
