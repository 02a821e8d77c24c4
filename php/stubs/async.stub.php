<?php

/**
 * Howdah's async library, for IDEs and static analysers; never run. Generated from php/async/src by
 * `make generate`; a test compares the two. Do not edit.
 */

namespace Howdah;

/**
 * Starts a coroutine. It begins when the current one waits, and belongs to the current request: same superglobals, headers
 * and output; the request is complete when all its tasks have ended. While the worker script starts: see detach().
 */
function go(callable $fn, mixed ...$args): Task {}

/** The same as go(). */
function async(callable $fn, mixed ...$args): Task {}

/** Starts a coroutine that belongs to the worker: no request waits for it, and it has no request's superglobals. */
function detach(callable $fn, mixed ...$args): Task {}

/**
 * Waits for a result, and throws what the task has thrown.
 *
 * @param float|null $timeout seconds
 *
 * @throws TimeoutException the task goes on
 */
function await(Awaitable $awaitable, ?float $timeout = null): mixed {}

/**
 * Waits for all tasks. The first error, like the end of the time, cancels the rest and is thrown.
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
 * Waits for the first end, success or error, and cancels the rest.
 *
 * @param iterable<Awaitable|\Closure> $tasks closures are started
 */
function race(iterable $tasks, ?float $timeout = null): mixed {}

/**
 * Calls $fn($item, $key) for each item, each call in a coroutine, $concurrency of them at a time. Items are taken as they
 * are needed, so a generator may have any number. The first error cancels the rest and is thrown.
 *
 * @return array<mixed> the results, with the items' keys and in their order
 */
function map(iterable $items, callable $fn, int $concurrency = 16, ?float $timeout = null): array {}

/** Waits. sleep() and usleep() do as well. */
function delay(float $seconds): void {}

/** Lets the coroutines run that are ready. */
function suspend(): void {}

/**
 * Calls the function with a time limit, in a coroutine. When the time is over, that coroutine and those it has started by
 * then are cancelled, and when they have ended, a TimeoutException is thrown.
 *
 * @throws TimeoutException
 */
function timeout(float $seconds, callable $fn): mixed {}

/** Calls the function; cancellation is held back until it has returned. For what must not be left half done. */
function protect(callable $fn): mixed {}

/** Calls the function at the end of the current coroutine, however it ends; of several, the last one first. */
function defer(callable $fn): void {}

/** Calls the function when the client has its whole answer. */
function after_response(callable $fn): void {}

/** The task that runs; null in the request's own coroutine and outside of coroutines. */
function current(): ?Task {}

function in_coroutine(): bool {}

/** This coroutine, or the task waited for, was cancelled. After a cancellation every further wait throws again. */
class CancelledException extends \Exception
{
}

/** The time given for a wait is over. */
class TimeoutException extends \Exception
{
}

/** The channel is closed: nothing can be sent any more, and everything sent before has been received. */
class ChannelClosedException extends \Exception
{
}

/** The pool is closed. */
class PoolClosedException extends \Exception
{
}

/** The task waited for has ended through exit() and has no result. */
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

/** Two coroutines used one connection at the same time. Its own trace is that of the one that came second. */
class ConcurrentUseError extends \Error
{
    /** Where the coroutine stood that has the connection, as getTraceAsString() has it. */
    public function getOtherTraceAsString(): string {}

    public function __toString(): string {}
}

/** A connection came back to its pool with an open transaction, which was rolled back. Its own trace is that of the return. */
class OpenTransactionError extends \Error
{
    /** Where the connection was taken: file and line, or a whole trace with the setting `howdah.traces`. */
    public function getTakenTraceAsString(): string {}

    /** Where the transaction was begun; null if a statement (`BEGIN`) did it. */
    public function getBegunTraceAsString(): ?string {}

    public function __toString(): string {}
}

/** Nothing can wake this coroutine any more: all of the worker wait for each other. */
class DeadlockError extends \Error
{
}

/** A rule of the library was broken: unlocked by a stranger, returned twice, called outside of a coroutine … */
class MisuseError extends \Error
{
}

/** The type that await(), all(), any() and race() accept. Tasks are the usual ones; a class of the application may be another. */
interface Awaitable
{
    public function isDone(): bool;

    /**
     * Waits for the result.
     *
     * @param float|null $timeout seconds; null waits as long as it takes
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed;
}

/** Values passed from coroutine to coroutine, in order, each to one receiver. */
final class Channel implements \IteratorAggregate, \Countable
{
    /** @param int $capacity values that may lie in it; with 0, a send waits for its receiver */
    public function __construct(int $capacity = 0) {}

    /**
     * Sends a value; waits while the channel is full.
     *
     * @param float|null $timeout seconds
     *
     * @throws ChannelClosedException also if it is closed meanwhile: the value was not received
     * @throws TimeoutException       the value was not sent
     */
    public function send(mixed $value, ?float $timeout = null): void {}

    /**
     * Sends a value if that needs no wait.
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

    /** Receives a value if there is one; false if there is none, closed or not. */
    public function tryReceive(mixed &$value): bool {}

    /** Nothing can be sent any more; what lies in it can be received. Closing twice does nothing. */
    public function close(): void {}

    public function isClosed(): bool {}

    /** @return \Iterator<int, mixed> the values until the channel is closed and empty */
    public function getIterator(): \Iterator {}

    /** Values that lie in it. */
    public function count(): int {}
}

/**
 * Values that go with a coroutine, as request ids, users and locales do: a task starts with a copy of what its parent
 * has, and what it sets, its parent does not see.
 */
final class Context
{
    /** @param string|object $key an object is a key that no one else has */
    public static function get(string|object $key, mixed $default = null): mixed {}

    public static function set(string|object $key, mixed $value): void {}

    public static function has(string|object $key): bool {}

    public static function remove(string|object $key): void {}

    /** The request's own values, one object for all of its tasks. In a detached task: the task's own. */
    public static function request(): \ArrayObject {}
}

/** A lock that one coroutine has at a time. It comes back when its coroutine ends. */
final class Mutex
{
    public function __construct() {}

    /**
     * @throws TimeoutException
     * @throws MisuseError      if this coroutine has it already
     */
    public function lock(?float $timeout = null): void {}

    public function tryLock(): bool {}

    /** @throws MisuseError if another coroutine has it, or none */
    public function unlock(): void {}

    /** Calls the function while no other coroutine does, however it ends. */
    public function synchronized(callable $fn, ?float $timeout = null): mixed {}

    public function isLocked(): bool {}
}

/**
 * Connections shared by the requests of a worker: a limited number, lent to one coroutine at a time, as good as new each
 * time. Connections are opened when they are needed; a pool can be made while the worker script starts.
 */
final class Pool implements \Countable
{
    /**
     * A pool of any objects. Functions get the connection and may wait.
     *
     * @param callable(): object           $factory     opens a connection
     * @param int                          $max         connections open at once
     * @param int                          $minIdle     connections kept open although they are unused
     * @param float                        $idleTimeout seconds after which an unused connection is closed
     * @param float                        $lifetime    seconds after which a connection is closed at its return
     * @param float|null                   $waitTimeout seconds get() waits for a free connection unless it is told otherwise
     * @param float                        $checkAfter  seconds after which an unused connection is checked before it is lent
     * @param callable(object): mixed|null $reset       called at each return; false: it cannot be used again
     * @param callable(object): mixed|null $check       whether it is alive; false: it is not
     * @param callable(object): mixed|null $close
     * @param string|null                  $name        for `howdah status` and the metrics, which add up pools of one name; by
     *                                                  its kind if null
     */
    public function __construct(callable $factory, int $max = 16, int $minIdle = 0, float $idleTimeout = 60.0, float $lifetime = 3600.0, ?float $waitTimeout = 30.0, float $checkAfter = 5.0, ?callable $reset = null, ?callable $check = null, ?callable $close = null, ?string $name = null) {}

    /**
     * A pool of PDO connections. What a request leaves behind is undone at the return: an open transaction is rolled back
     * (see put()), attributes are set back. If statements were seen that change the session (SET, temporary tables, user
     * variables, locks …), the connection is reset (PostgreSQL: DISCARD ALL) or replaced by a new one (others).
     *
     * @param array<int, mixed> $options as for PDO
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function pdo(string $dsn, ?string $user = null, ?string $password = null, array $options = [], int $max = 16, mixed ...$limits): self {}

    /**
     * A pool of mysqli connections.
     *
     * @param array<int, mixed> $options for mysqli_options()
     * @param bool              $reset   reset the session at each return (COM_CHANGE_USER: transaction, variables, temporary
     *                                   tables, locks); false leaves it as it is, which saves an exchange with the server
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function mysqli(?string $host = null, ?string $user = null, ?string $password = null, ?string $database = null, ?int $port = null, ?string $socket = null, ?string $charset = null, array $options = [], bool $reset = true, int $max = 16, mixed ...$limits): self {}

    /**
     * A pool of phpredis connections. At the return an open multi() is discarded (see put()), watched keys are released, and
     * database and options are set back.
     *
     * @param string                    $host     or the path of a socket
     * @param string|array<string>|null $auth     password, or user and password
     * @param array<int, mixed>         $settings for Redis::setOption()
     * @param mixed                     ...$limits the constructor's, by name
     */
    public static function redis(string $host = '127.0.0.1', int $port = 6379, string|array|null $auth = null, int $database = 0, float $connectTimeout = 5.0, float $readTimeout = 0.0, array $settings = [], int $max = 16, mixed ...$limits): self {}

    /**
     * Takes a connection; waits while all are lent. It comes back by put(), at the latest when this coroutine ends.
     *
     * @param float|null $timeout seconds; the pool's $waitTimeout if null
     *
     * @throws TimeoutException
     * @throws PoolClosedException
     */
    public function get(?float $timeout = null): object {}

    /**
     * Gives a connection back. It must not be used afterwards.
     *
     * @throws MisuseError          if it was given back before, or is not of this pool
     * @throws OpenTransactionError if a transaction was open. It is rolled back, and the connection has been returned.
     */
    public function put(object $connection): void {}

    /**
     * Calls $fn($connection) and takes the connection back, however that ends.
     *
     * @throws OpenTransactionError if the function returns with an open transaction; if it throws, its error is thrown
     */
    public function use(callable $fn, ?float $timeout = null): mixed {}

    /** The connection of this coroutine: taken at the first call, returned when the coroutine ends. */
    public function mine(?float $timeout = null): object {}

    /** Connections that are open. */
    public function count(): int {}

    /**
     * Numbers for monitoring, named as in the metrics: those up to `wait_max_seconds` are of now, the others count since the
     * start.
     *
     * @return array<string, int|float>
     */
    public function stats(): array {}

    /** Closes the unused connections, and the others at their return. Who waits gets a PoolClosedException. */
    public function close(): void {}
}

/** Tasks that end together. Leaving a scope means waiting for its tasks or cancelling them: none is left behind. */
final class Scope
{
    /** @param int|null $concurrency how many of the scope's own tasks may run at once; go() waits for its turn */
    public function __construct(?int $concurrency = null) {}

    /**
     * Calls $fn($scope), then waits for the scope's tasks. The first error, like the end of the time, cancels the rest and
     * is thrown. Errors of tasks are seen when $fn has returned.
     *
     * @return mixed what $fn returned
     */
    public static function run(callable $fn, ?int $concurrency = null, ?float $timeout = null): mixed {}

    /** Starts a task. What it starts with go() belongs to the scope as well, but wait() does not return its results. */
    public function go(callable $fn, mixed ...$args): Task {}

    /**
     * Waits for all tasks of the scope. The first error of go()'s tasks, like the end of the time, cancels the rest and is
     * thrown.
     *
     * @return array<mixed> the results of go()'s tasks since the last wait(), in their order
     */
    public function wait(?float $timeout = null): array {}

    /** Cancels all tasks of the scope and waits until they have ended. It takes no further ones. */
    public function cancel(): void {}
}

/** A number of permits, given to those who ask in the order in which they ask. */
final class Semaphore
{
    public function __construct(int $permits) {}

    /** @throws TimeoutException */
    public function acquire(?float $timeout = null): void {}

    public function tryAcquire(): bool {}

    public function release(): void {}

    /** Calls the function with a permit, which is given back however it ends. */
    public function use(callable $fn, ?float $timeout = null): mixed {}

    /** Permits that are free. */
    public function available(): int {}
}

/** A function that runs in a separate coroutine, and its result. */
final class Task implements Awaitable
{
    public function id(): int {}

    /**
     * Waits for the task's end: its result, or what it has thrown.
     *
     * @param float|null $timeout seconds; a task whose time is over goes on
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed {}

    /**
     * Every current and later wait in the task fails with a CancelledException. It ends when its function lets that pass,
     * and not before it has cleaned up.
     */
    public function cancel(string $why = ''): void {}

    public function isDone(): bool {}

    public function isCancelled(): bool {}

    /** @return array<array<string, mixed>> where a waiting task stands, as debug_backtrace() has it */
    public function backtrace(): array {}
}

/**
 * Functions called later or again and again. Timers belong to the worker: no request waits for them, and their functions
 * have no request's superglobals. Within a request: go() and delay().
 */
final class Timer
{
    /** Calls the function once, in so many milliseconds. */
    public static function after(int $milliseconds, callable $fn, mixed ...$args): self {}

    /**
     * Calls the function every so many milliseconds until cancel(). A call never begins before the last one has ended;
     * what is missed meanwhile is left out. Errors go to the log.
     */
    public static function every(int $milliseconds, callable $fn, mixed ...$args): self {}

    /** No further call; one that runs goes on. */
    public function cancel(): void {}

    public function isActive(): bool {}
}

/** A counter of things to be done, and a way to wait until it is zero. */
final class WaitGroup implements \Countable
{
    public function __construct() {}

    public function add(int $n = 1): void {}

    public function done(): void {}

    /** add(), a task, and done() when it has ended, whatever its end. */
    public function go(callable $fn, mixed ...$args): Task {}

    /** @throws TimeoutException */
    public function wait(?float $timeout = null): void {}

    public function count(): int {}
}
