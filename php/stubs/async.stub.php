<?php

/**
 * Howdah's async library, for IDEs and static analysers; never run. Generated from php/async/src by
 * `make generate`; a test compares the two. Do not edit.
 */

namespace Howdah;

/**
 * Starts a coroutine. It begins when the current one waits, ends or has run for its time slice, and belongs to the
 * current request: it has the same superglobals, headers and output, and the request is complete when all its tasks
 * have ended. While the worker script starts, go() works like detach().
 */
function go(callable $fn, mixed ...$args): Task {}

/** Alias of go(). */
function async(callable $fn, mixed ...$args): Task {}

/** Starts a coroutine that belongs to the worker: no request waits for it, and it has no request's superglobals. */
function detach(callable $fn, mixed ...$args): Task {}

/**
 * Waits for a result, or throws the task's error.
 *
 * @param float|null $timeout seconds
 *
 * @throws TimeoutException the task continues
 */
function await(Awaitable $awaitable, ?float $timeout = null): mixed {}

/**
 * Waits for all tasks. The first error, or the timeout, cancels the rest and is thrown.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 *
 * @return array<mixed> their results, with the keys of $tasks
 */
function all(iterable $tasks, ?float $timeout = null): array {}

/**
 * Waits for the first success and cancels the rest.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 *
 * @throws CompositeException if all have failed
 */
function any(iterable $tasks, ?float $timeout = null): mixed {}

/**
 * Waits for the first task to end, by success or error, and cancels the rest.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 */
function race(iterable $tasks, ?float $timeout = null): mixed {}

/**
 * Calls $fn($item, $key) for each item, each call in a coroutine, $concurrency of them at a time. Items are taken as needed,
 * so a generator may yield any number. The first error cancels the rest and is thrown.
 *
 * @return array<mixed> the results, with the items' keys and in their order
 */
function map(iterable $items, callable $fn, int $concurrency = 16, ?float $timeout = null): array {}

/** Waits without blocking other coroutines, as sleep() and usleep() also do. */
function delay(float $seconds): void {}

/** Lets all ready coroutines run. */
function suspend(): void {}

/**
 * Calls the function with a timeout, in a coroutine. When the timeout expires, that coroutine and those it has started are
 * cancelled, and when they have ended, a TimeoutException is thrown.
 *
 * @throws TimeoutException
 */
function timeout(float $seconds, callable $fn): mixed {}

/** Calls the function and delays cancellation until it has returned. For work that must not be left half done. */
function protect(callable $fn): mixed {}

/** Calls the function at the end of the current coroutine, however it ends; of several, the last one first. */
function defer(callable $fn): void {}

/** Calls the function when the client has its whole response. */
function after_response(callable $fn): void {}

/** Returns the running task; null in the request's own coroutine and outside of coroutines. */
function current(): ?Task {}

function in_coroutine(): bool {}

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
    public function __construct(array $errors) {}

    /** @return array<\Throwable> */
    public function getErrors(): array {}
}

/** Two coroutines used one connection at the same time. Its own trace is that of the second one. */
class ConcurrentUseError extends \Error
{
    /** Returns the stack of the coroutine that was using the connection, formatted like getTraceAsString(). */
    public function getOtherTraceAsString(): string {}

    public function __toString(): string {}
}

/**
 * A connection was returned to its pool with an open transaction, which was rolled back. Its own trace is that of the
 * return.
 */
class OpenTransactionError extends \Error
{
    /** Returns where the connection was taken: file and line, or a whole trace with the setting `howdah.traces`. */
    public function getTakenTraceAsString(): string {}

    /** Returns where the transaction was begun; null if a statement (`BEGIN`) began it. */
    public function getBegunTraceAsString(): ?string {}

    public function __toString(): string {}
}

/** Nothing can wake this coroutine any more: all coroutines of the worker wait for each other. */
class DeadlockError extends \Error
{
}

/** A rule of the library was broken: unlocked by another coroutine, returned twice, called outside of a coroutine … */
class MisuseError extends \Error
{
}

/** The type that await(), all(), any() and race() accept. Usually a task; applications can implement it, too. */
interface Awaitable
{
    public function isDone(): bool;

    /**
     * Waits for the result.
     *
     * @param float|null $timeout seconds; null means no limit
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed;
}

/** A queue of values between coroutines, in order, each delivered to one receiver. */
final class Channel implements \IteratorAggregate, \Countable
{
    /** @param int $capacity maximum number of buffered values; with 0, a send waits for its receiver */
    public function __construct(int $capacity = 0) {}

    /**
     * Sends a value; waits while the channel is full.
     *
     * @param float|null $timeout seconds
     *
     * @throws ChannelClosedException also if it is closed while waiting: the value was not received
     * @throws TimeoutException       the value was not sent
     */
    public function send(mixed $value, ?float $timeout = null): void {}

    /**
     * Sends a value if that is possible without waiting; false otherwise.
     *
     * @throws ChannelClosedException
     */
    public function trySend(mixed $value): bool {}

    /**
     * Receives the next value; waits while there is none.
     *
     * @param float|null $timeout seconds
     *
     * @throws ChannelClosedException when it is closed and empty
     * @throws TimeoutException
     */
    public function receive(?float $timeout = null): mixed {}

    /** Receives a value if there is one. Returns false if there is none, whether or not the channel is closed. */
    public function tryReceive(mixed &$value): bool {}

    /** Closes the channel: nothing can be sent any more, but buffered values can be received. Closing twice does nothing. */
    public function close(): void {}

    public function isClosed(): bool {}

    /** @return \Iterator<int, mixed> the values until the channel is closed and empty */
    public function getIterator(): \Iterator {}

    /** Returns the number of buffered values. */
    public function count(): int {}
}

/**
 * Values that belong to a coroutine, such as request ids, users and locales. A task starts with a copy of its parent's
 * values, a detached one with none; values that it sets are not visible to its parent.
 */
final class Context
{
    /** @param string|object $key an object is a key that no other code can use */
    public static function get(string|object $key, mixed $default = null): mixed {}

    public static function set(string|object $key, mixed $value): void {}

    public static function has(string|object $key): bool {}

    public static function remove(string|object $key): void {}

    /** Returns the request's own values, one object for all of its tasks. In a detached task: the task's own. */
    public static function request(): \ArrayObject {}
}

/** A lock that one coroutine holds at a time. It is released when its coroutine ends. */
final class Mutex
{
    public function __construct() {}

    /**
     * @throws TimeoutException
     * @throws MisuseError      if this coroutine already holds it
     */
    public function lock(?float $timeout = null): void {}

    public function tryLock(): bool {}

    /** @throws MisuseError if this coroutine does not hold it */
    public function unlock(): void {}

    /** Calls the function while holding the lock, and releases it however the function ends. */
    public function synchronized(callable $fn, ?float $timeout = null): mixed {}

    public function isLocked(): bool {}
}

/**
 * Connections shared by the requests of a worker: a limited number, lent to one coroutine at a time, and reset after each
 * use. Connections are opened when they are needed; a pool can be created while the worker script starts.
 */
final class Pool implements \Countable
{
    /**
     * Creates a pool of any objects. Functions get the connection and may wait.
     *
     * @param callable(): object           $factory     opens a connection
     * @param int                          $max         maximum number of open connections
     * @param int                          $minIdle     number of connections kept open although they are unused
     * @param float                        $idleTimeout seconds after which those beyond $minIdle are closed if unused
     * @param float                        $lifetime    seconds after which a connection is closed at its return
     * @param float|null                   $waitTimeout seconds that get() waits for a free connection by default; null: no limit
     * @param float                        $checkAfter  seconds after which an unused connection is checked before it is lent
     * @param callable(object): mixed|null $reset       called at each return; false: it cannot be used again
     * @param callable(object): mixed|null $check       returns false if the connection is dead
     * @param callable(object): mixed|null $close
     * @param string|null                  $name        for `howdah status` and the metrics, which add up pools with the same
     *                                                  name; null: a name by its kind
     */
    public function __construct(callable $factory, int $max = 16, int $minIdle = 0, float $idleTimeout = 60.0, float $lifetime = 3600.0, ?float $waitTimeout = 30.0, float $checkAfter = 5.0, ?callable $reset = null, ?callable $check = null, ?callable $close = null, ?string $name = null) {}

    /**
     * Creates a pool of PDO connections. The return undoes a request's changes: an open transaction is rolled back (see
     * put()), attributes are restored. After statements that change the session (SET, temporary tables, user variables,
     * locks …), the connection is reset (PostgreSQL: DISCARD ALL) or replaced by a new one (others).
     *
     * @param array<int, mixed> $options as for PDO
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function pdo(string $dsn, ?string $user = null, ?string $password = null, array $options = [], int $max = 16, mixed ...$limits): self {}

    /**
     * Creates a pool of mysqli connections.
     *
     * @param array<int, mixed> $options for mysqli_options()
     * @param bool              $reset   reset the session at each return (COM_CHANGE_USER: transaction, variables, temporary
     *                                   tables, locks); false keeps it, which saves an exchange with the server
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function mysqli(?string $host = null, ?string $user = null, ?string $password = null, ?string $database = null, ?int $port = null, ?string $socket = null, ?string $charset = null, array $options = [], bool $reset = true, int $max = 16, mixed ...$limits): self {}

    /**
     * Creates a pool of phpredis connections. At the return, an open multi() is discarded (see put()), watched keys are
     * released, and the database and the options that affect commands are restored.
     *
     * @param string                    $host     or the path of a socket
     * @param string|array<string>|null $auth     password, or user and password
     * @param array<int, mixed>         $settings for Redis::setOption()
     * @param mixed                     ...$limits the constructor's, by name
     */
    public static function redis(string $host = '127.0.0.1', int $port = 6379, string|array|null $auth = null, int $database = 0, float $connectTimeout = 5.0, float $readTimeout = 0.0, array $settings = [], int $max = 16, mixed ...$limits): self {}

    /**
     * Takes a connection; waits while all are lent. Return it with put(); otherwise it is returned when this coroutine ends.
     *
     * @param float|null $timeout seconds; the pool's $waitTimeout if null
     *
     * @throws TimeoutException
     * @throws PoolClosedException
     */
    public function get(?float $timeout = null): object {}

    /**
     * Returns a connection to the pool. It must not be used afterwards.
     *
     * @throws MisuseError          if it was already returned, or does not belong to this pool
     * @throws OpenTransactionError if a transaction was open. It is rolled back, and the connection has been returned.
     */
    public function put(object $connection): void {}

    /**
     * Calls $fn($connection) and returns the connection, however the function ends.
     *
     * @throws OpenTransactionError if the function returns with an open transaction; if it throws, its error is thrown
     */
    public function use(callable $fn, ?float $timeout = null): mixed {}

    /** Returns the connection of this coroutine: taken at the first call, returned to the pool when the coroutine ends. */
    public function mine(?float $timeout = null): object {}

    /** Returns the number of open connections. */
    public function count(): int {}

    /**
     * Returns numbers for monitoring, named as in the metrics: those up to `wait_max_seconds` are current values, the others
     * are totals since the start.
     *
     * @return array<string, int|float>
     */
    public function stats(): array {}

    /** Closes the unused connections now, and the others at their return. Waiting callers get a PoolClosedException. */
    public function close(): void {}
}

/** Tasks that end together. Leaving a scope waits for its tasks or cancels them: none is left running. */
final class Scope
{
    /** @param int|null $concurrency maximum number of go()'s tasks that run at once; go() waits for its turn */
    public function __construct(?int $concurrency = null) {}

    /**
     * Calls $fn($scope), then waits for the scope's tasks. The first error, or the timeout, cancels the rest and is thrown.
     * Errors of tasks take effect when $fn has returned.
     *
     * @return mixed the return value of $fn
     */
    public static function run(callable $fn, ?int $concurrency = null, ?float $timeout = null): mixed {}

    /**
     * Starts a task. Tasks that it starts with go() belong to the scope as well, but wait() does not return their results.
     */
    public function go(callable $fn, mixed ...$args): Task {}

    /**
     * Waits for all tasks of the scope. The first error of go()'s tasks, or the timeout, cancels the rest and is thrown.
     *
     * @return array<mixed> the results of go()'s tasks since the last wait(), in their order
     */
    public function wait(?float $timeout = null): array {}

    /** Cancels all tasks of the scope and waits until they have ended. The scope accepts no further tasks. */
    public function cancel(): void {}
}

/** A number of permits, granted to waiting coroutines in their order of arrival. */
final class Semaphore
{
    public function __construct(int $permits) {}

    /** @throws TimeoutException */
    public function acquire(?float $timeout = null): void {}

    public function tryAcquire(): bool {}

    public function release(): void {}

    /** Calls the function with a permit, and releases it when the function returns, throws or calls exit(). */
    public function use(callable $fn, ?float $timeout = null): mixed {}

    /** Returns the number of free permits. */
    public function available(): int {}
}

/** A function that runs in a separate coroutine, and its result. */
final class Task implements Awaitable
{
    public function id(): int {}

    /**
     * Waits for the task's end. Returns its result, or throws its error.
     *
     * @param float|null $timeout seconds; after the timeout, the task continues
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed {}

    /**
     * Cancels the task: its current wait and every later one fail with a CancelledException. The task ends when its function
     * lets that exception pass, so it can clean up first.
     */
    public function cancel(string $why = ''): void {}

    public function isDone(): bool {}

    public function isCancelled(): bool {}

    /** @return array<array<string, mixed>> the stack of a waiting task, in the format of debug_backtrace() */
    public function backtrace(): array {}
}

/**
 * Functions that are called later, once or repeatedly. Timers belong to the worker: no request waits for them, and their
 * functions have no request's superglobals. Within a request, use go() and delay().
 */
final class Timer
{
    /** Calls the function once, after this number of milliseconds. */
    public static function after(int $milliseconds, callable $fn, mixed ...$args): self {}

    /**
     * Calls the function every this many milliseconds until cancel(). A call never begins before the previous one has ended;
     * calls missed meanwhile are skipped. Errors are logged.
     */
    public static function every(int $milliseconds, callable $fn, mixed ...$args): self {}

    /** Prevents further calls; a running call continues. */
    public function cancel(): void {}

    public function isActive(): bool {}
}

/** A counter of pending work, with a method that waits until it is zero. */
final class WaitGroup implements \Countable
{
    public function __construct() {}

    public function add(int $n = 1): void {}

    public function done(): void {}

    /** Calls add(), starts a task, and calls done() when the task has ended, with or without an error. */
    public function go(callable $fn, mixed ...$args): Task {}

    /** @throws TimeoutException */
    public function wait(?float $timeout = null): void {}

    public function count(): int {}
}
