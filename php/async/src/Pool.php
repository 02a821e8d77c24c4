<?php

/* Connections shared by the requests of a worker: a limited number, lent to one coroutine at a time, and reset after each
 * use. Connections are opened when they are needed; a pool can be created while the worker script starts. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\CallableDriver;
use Howdah\Internal\Connections;
use Howdah\Internal\Guard;
use Howdah\Internal\MysqliDriver;
use Howdah\Internal\PdoDriver;
use Howdah\Internal\PooledConnection;
use Howdah\Internal\PoolDriver;
use Howdah\Internal\RedisDriver;
use Howdah\Internal\Report;
use Howdah\Internal\Stack;
use Howdah\Internal\WaitQueue;

final class Pool implements \Countable
{
    /** Its name in `howdah status` and the metrics. */
    public readonly string $name;
    private PoolDriver $driver;
    /** The connections and their holders, implemented in C: it handles almost every query alone. */
    private readonly Connections $connections;
    private readonly WaitQueue $line;
    private ?Task $keeper = null;
    private bool $closed = false;

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
    public function __construct(
        callable $factory,
        private readonly int $max = 16,
        private readonly int $minIdle = 0,
        private readonly float $idleTimeout = 60.0,
        private readonly float $lifetime = 3600.0,
        private readonly ?float $waitTimeout = 30.0,
        private readonly float $checkAfter = 5.0,
        ?callable $reset = null,
        ?callable $check = null,
        ?callable $close = null,
        ?string $name = null,
    ) {
        if ($max < 1 || $minIdle < 0 || $minIdle > $max) {
            throw new \ValueError('A pool needs $max of at least 1 and $minIdle from 0 to $max');
        }
        $closure = static fn (?callable $function): ?\Closure => $function === null ? null : $function(...);
        $this->driver = new CallableDriver($factory(...), $closure($check), $closure($reset), $closure($close));
        $this->line = new WaitQueue();
        $this->name = $name ?? Connections::freeName('objects');
        // A weak reference, because the connections hold these functions.
        $self = \WeakReference::create($this);
        $forget = static function (PooledConnection $entry, bool $cancelled) use ($self): void {
            $self->get()?->comeBack($entry, $cancelled);
        };
        $this->connections = new Connections($this->name, $max, $checkAfter, $lifetime, $minIdle > 0, $forget);
    }

    /**
     * Creates a pool of PDO connections. The return undoes a request's changes: an open transaction is rolled back (see
     * put()), attributes are restored. After statements that change the session (SET, temporary tables, user variables,
     * locks …), the connection is reset (PostgreSQL: DISCARD ALL) or replaced by a new one (others).
     *
     * @param array<int, mixed> $options as for PDO
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function pdo(
        string $dsn,
        ?string $user = null,
        #[\SensitiveParameter] ?string $password = null,
        array $options = [],
        int $max = 16,
        mixed ...$limits,
    ): self {
        return self::with(new PdoDriver($dsn, $user, $password, $options), strstr($dsn, ':', true) ?: 'pdo', $max, $limits);
    }

    /**
     * Creates a pool of mysqli connections.
     *
     * @param array<int, mixed> $options for mysqli_options()
     * @param bool              $reset   reset the session at each return (COM_CHANGE_USER: transaction, variables, temporary
     *                                   tables, locks); false keeps it, which saves an exchange with the server
     * @param mixed             ...$limits the constructor's, by name
     */
    public static function mysqli(
        ?string $host = null,
        ?string $user = null,
        #[\SensitiveParameter] ?string $password = null,
        ?string $database = null,
        ?int $port = null,
        ?string $socket = null,
        ?string $charset = null,
        array $options = [],
        bool $reset = true,
        int $max = 16,
        mixed ...$limits,
    ): self {
        return self::with(new MysqliDriver($host, $user, $password, $database, $port, $socket, $charset, $options, $reset), 'mysqli', $max, $limits);
    }

    /**
     * Creates a pool of phpredis connections. At the return, an open multi() is discarded (see put()), watched keys are
     * released, and the database and the options that affect commands are restored.
     *
     * @param string                    $host     or the path of a socket
     * @param string|array<string>|null $auth     password, or user and password
     * @param array<int, mixed>         $settings for Redis::setOption()
     * @param mixed                     ...$limits the constructor's, by name
     */
    public static function redis(
        string $host = '127.0.0.1',
        int $port = 6379,
        #[\SensitiveParameter] string|array|null $auth = null,
        int $database = 0,
        float $connectTimeout = 5.0,
        float $readTimeout = 0.0,
        array $settings = [],
        int $max = 16,
        mixed ...$limits,
    ): self {
        return self::with(new RedisDriver($host, $port, $auth, $database, $connectTimeout, $readTimeout, $settings), 'redis', $max, $limits);
    }

    /**
     * Takes a connection; waits while all are lent. Return it with put(); otherwise it is returned when this coroutine ends.
     *
     * @param float|null $timeout seconds; the pool's $waitTimeout if null
     *
     * @throws TimeoutException
     * @throws PoolClosedException
     */
    public function get(?float $timeout = null): object
    {
        return $this->connections->take() ?? $this->obtain($timeout);
    }

    /** The slow path of get(): there is no unused connection, or one must be checked first. */
    private function obtain(?float $timeout): object
    {
        $this->mustBeOpen();
        WaitQueue::coroutine();
        ++$this->connections->acquired;
        if ($this->minIdle > 0) {
            $this->keep();
        }
        $entry = $this->pickIdle();
        if ($entry === null) {
            if ($this->connections->open < $this->max) {
                ++$this->connections->open;
            } else {
                $entry = $this->waitInLine($timeout ?? $this->waitTimeout);
            }
            $entry ??= $this->connect();
        }

        return $this->connections->lend($entry);
    }

    /**
     * Returns a connection to the pool. It must not be used afterwards.
     *
     * @throws MisuseError          if it was already returned, or does not belong to this pool
     * @throws OpenTransactionError if a transaction was open. It is rolled back, and the connection has been returned.
     */
    public function put(object $connection): void
    {
        $entry = $this->connections->giveBack($connection, $this->driver);
        if ($entry !== null) {
            $this->takeBack($entry, null);
        }
    }

    /**
     * Finishes the return of a connection that another coroutine waits for, or that must be reset.
     *
     * @param \Throwable|null $because the error that ended its use
     */
    private function takeBack(PooledConnection $entry, ?\Throwable $because): void
    {
        if ($entry->asNew) {
            $this->passOn($entry);
        } else {
            $this->recycleAndReport($entry, $because);
        }
    }

    /**
     * Calls $fn($connection) and returns the connection, however the function ends.
     *
     * @throws OpenTransactionError if the function returns with an open transaction; if it throws, its error is thrown
     */
    public function use(callable $fn, ?float $timeout = null): mixed
    {
        $connection = $this->connections->take() ?? $this->obtain($timeout);
        $error = null;
        try {
            return $fn($connection);
        } catch (\Throwable $error) {
            $this->connections->doubt($connection);
            throw $error;
        } finally {
            $entry = $this->connections->giveBack($connection, $this->driver);
            if ($entry !== null) {
                $this->takeBack($entry, $error);
            }
        }
    }

    /** Returns the connection of this coroutine: taken at the first call, returned to the pool when the coroutine ends. */
    public function mine(?float $timeout = null): object
    {
        return $this->connections->mine() ?? $this->get($timeout);
    }

    /** Returns the number of open connections. */
    public function count(): int
    {
        return $this->connections->open;
    }

    /**
     * Returns numbers for monitoring, named as in the metrics: those up to `wait_max_seconds` are current values, the others
     * are totals since the start.
     *
     * @return array<string, int|float>
     */
    public function stats(): array
    {
        return get_object_vars($this->connections);
    }

    /** Closes the unused connections now, and the others at their return. Waiting callers get a PoolClosedException. */
    public function close(): void
    {
        $this->closed = true;
        $this->connections->close();
        $this->keeper?->cancel();
        $this->line->serveAll(refused: true);
        $this->connections->waiting = \count($this->line);
        while (($entry = $this->connections->takeIdle()) !== null) {
            $this->discard($entry);
        }
    }

    /** @param array<string, mixed> $limits */
    private static function with(PoolDriver $driver, string $kind, int $max, array $limits): self
    {
        foreach (['factory', 'reset', 'check', 'close'] as $name) {
            if (\array_key_exists($name, $limits)) {
                throw new \ValueError("\$$name is for pools of other objects");
            }
        }
        $limits['name'] ??= Connections::freeName($kind);
        $pool = new self(static fn () => null, $max, ...$limits);
        $pool->driver = $driver;

        return $pool;
    }

    private function mustBeOpen(): void
    {
        if ($this->closed) {
            throw new PoolClosedException('The pool is closed');
        }
    }

    /** Returns an unused connection that is alive, or null. */
    private function pickIdle(): ?PooledConnection
    {
        while (($entry = $this->connections->takeIdle()) !== null) {
            if ($entry->seen + $this->checkAfter > \hrtime(true) / 1e9 || $this->isAlive($entry)) {
                return $entry;
            }
            $this->discard($entry);
        }

        return null;
    }

    /** @return PooledConnection|null null: the slot of a closed connection, for opening a new one */
    private function waitInLine(?float $timeout): ?PooledConnection
    {
        $began = WaitQueue::now();
        ++$this->connections->waits;
        $this->connections->waiting = \count($this->line) + 1;
        try {
            $waiter = $this->line->wait($timeout);
        } finally {
            $this->connections->waiting = \count($this->line);
        }
        $waited = WaitQueue::now() - $began;
        $this->connections->wait_seconds += $waited;
        $this->connections->wait_max_seconds = max($this->connections->wait_max_seconds, $waited);
        if ($waiter === null) {
            ++$this->connections->timeouts;
            throw new TimeoutException(\sprintf('None of the pool\'s %d connections was free within %g s', $this->max, $timeout));
        }
        if ($waiter->refused) {
            $this->mustBeOpen();
        }

        return $waiter->answer;
    }

    /** Opens a connection in a slot that is already counted. */
    private function connect(): PooledConnection
    {
        $entry = new PooledConnection();
        // Both exit() and errors release the slot.
        $place = new Guard($this->leavePlace(...));
        try {
            $entry->connection = $this->driver->open($entry->state);
        } catch (\Throwable $error) {
            ++$this->connections->open_failures;
            throw $error;
        }
        $place->disarm();
        ++$this->connections->opened;

        return $entry;
    }

    /** Resets a connection, passes it on, and reports it if a transaction had to be rolled back. */
    private function recycleAndReport(PooledConnection $entry, ?\Throwable $because): void
    {
        if (!$this->isInTransaction($entry)) {
            $this->recycle($entry);

            return;
        }
        [$taken, $begun] = [$entry->taken, $entry->state->begun];
        $entry->state->rolledBack = false;
        $this->recycle($entry);
        if (!$entry->state->rolledBack) {
            // It was lost with the connection.
            return;
        }
        ++$this->connections->open_transactions;
        $message = "A connection was returned to the pool \"$this->name\" with an open transaction, which was rolled back";
        if ($because !== null) {
            Report::warning("$message; its use ended with " . $because::class . ': ' . $because->getMessage() . Report::origin($taken, $begun));

            return;
        }
        Report::error("$message; returned at:\n" . Stack::full() . Report::origin($taken, $begun));
        throw new OpenTransactionError($message, $taken, $begun);
    }

    private function isInTransaction(PooledConnection $entry): bool
    {
        try {
            return $this->driver->inTransaction($entry->connection, $entry->state);
        } catch (\Throwable) {
            // Another coroutine is using it.
            return false;
        }
    }

    /** Resets a returned connection and passes it on. */
    private function recycle(PooledConnection $entry): void
    {
        $place = new Guard(function () use ($entry): void {
            $entry->connection = null;
            $this->leavePlace();
        });
        Coroutine::shield(true);
        try {
            $good = $this->makeAsNew($entry);
        } finally {
            Coroutine::shield(false);
        }
        $place->disarm();
        if ($good) {
            $this->passOn($entry);
        } else {
            $this->discard($entry);
        }
    }

    /** Passes a connection to the next waiter, or makes it idle if there is none. */
    private function passOn(PooledConnection $entry): void
    {
        if (!$this->serve($entry)) {
            $this->connections->addIdle($entry);
            $this->keep();
        }
    }

    /** @param PooledConnection|null $entry for the next waiter; null: a slot for opening one */
    private function serve(?PooledConnection $entry): bool
    {
        $served = $this->line->serve($entry) !== null;
        $this->connections->waiting = \count($this->line);

        return $served;
    }

    private function makeAsNew(PooledConnection $entry): bool
    {
        // For the reset itself, which may run in a coroutine of the worker.
        $entry->state->lend();
        try {
            $good = !$this->closed
                && $entry->born + $this->lifetime > WaitQueue::now()
                && $this->driver->reset($entry->connection, $entry->state)
                && (!$entry->state->doubtful || $this->driver->isAlive($entry->connection));
        } catch (\Throwable $error) {
            $good = false;
            ++$this->connections->check_failures;
            if (!$entry->state->doubtful) {
                Report::warning('A connection could not be reset at its return to the pool and is closed: ' . $error->getMessage());
            }
        }
        $entry->state->takeBack();
        $entry->seen = WaitQueue::now();

        return $good && !$this->closed;
    }

    private function isAlive(PooledConnection $entry): bool
    {
        $entry->state->lend();
        try {
            return $this->driver->isAlive($entry->connection);
        } catch (CancelledException $cancelled) {
            $this->discard($entry);
            throw $cancelled;
        } catch (\Throwable) {
            ++$this->connections->check_failures;

            return false;
        }
    }

    private function discard(PooledConnection $entry): void
    {
        try {
            $this->driver->close($entry->connection);
        } catch (\Throwable) {
            // It is closed either way.
        }
        $entry->connection = null;
        ++$this->connections->closed;
        $this->leavePlace();
    }

    /** Releases a slot: the next waiter opens a connection in it. */
    private function leavePlace(): void
    {
        if (!$this->serve(null)) {
            --$this->connections->open;
        }
    }

    /** Called when a coroutine has ended without returning the connection. Its destructors run now, so nothing can wait. */
    private function comeBack(PooledConnection $entry, bool $cancelled): void
    {
        ++$this->connections->forgotten;
        if ($this->isInTransaction($entry)) {
            ++$this->connections->open_transactions;
            $message = "A connection of the pool \"$this->name\" was left with an open transaction at its coroutine's end; it is rolled back"
                . Report::origin($entry->taken, $entry->state->begun);
            $cancelled ? Report::warning($message) : Report::error($message);
        }
        Task::start($this->recycle(...), [$entry], detached: true);
    }

    /** Makes sure that unused connections are closed in time, and that $minIdle are open. */
    private function keep(): void
    {
        if ($this->keeper === null) {
            $this->connections->keep(true);
            $this->keeper = Task::start(self::keeper(...), [\WeakReference::create($this), max(0.05, min($this->idleTimeout / 2, 30.0))], detached: true);
        }
    }

    /** @param \WeakReference<self> $reference an unreferenced pool is destroyed, and its keeper ends */
    private static function keeper(\WeakReference $reference, float $period): void
    {
        do {
            delay($period);
            $pool = $reference->get();
            $goesOn = $pool !== null && $pool->expire();
            unset($pool);
        } while ($goesOn);
    }

    private function expire(): bool
    {
        $limit = WaitQueue::now() - $this->idleTimeout;
        while (($entry = $this->connections->takeExpired($limit, $this->minIdle)) !== null) {
            $this->discard($entry);
        }
        try {
            while (!$this->closed && $this->connections->idle < $this->minIdle && $this->connections->open < $this->max) {
                ++$this->connections->open;
                $entry = $this->connect();
                if (!$this->serve($entry)) {
                    $this->connections->addIdle($entry);
                }
            }
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $error) {
            Report::warning('Cannot open the minimum of connections: ' . $error->getMessage());
        }
        if ($this->connections->idle === 0 && $this->minIdle === 0 || $this->closed) {
            $this->keeper = null;
            $this->connections->keep(false);

            return false;
        }

        return true;
    }
}
