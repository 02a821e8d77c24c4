<?php

/* What a pool knows about one of its connections that the connection itself must know as well: who may use it, and what
 * has to be undone before somebody else does. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;
use Howdah\MisuseError;

final class ConnectionState
{
    /** Settings of the session may have changed, or there are temporary tables, locks, variables. */
    public bool $changed = false;
    /** Something has failed: look whether the connection is alive before it is used again. */
    public bool $doubtful = false;
    /** Where the open transaction was begun. */
    public ?string $begun = null;
    /** The reset has ended a transaction that was open. */
    public bool $rolledBack = false;
    /** @var array<int, mixed> attributes that were changed, with their former values */
    public array $attributes = [];
    public bool $lent = false;
    /** @var Coroutine|null the main coroutine of the request that has it; not typed, as in PooledConnection */
    public $request = null;

    /** The connection is the current request's now. */
    public function lend(): void
    {
        $this->lent = true;
        $this->request = Coroutine::main();
    }

    public function takeBack(): void
    {
        $this->lent = false;
        $this->request = null;
        $this->changed = false;
        $this->begun = null;
        $this->attributes = [];
    }

    /** @throws MisuseError if the connection is not, or no longer, the current request's */
    public function check(): void
    {
        if (!$this->lent) {
            throw new MisuseError('The connection was used after its return to the pool');
        }
        if ($this->request !== Coroutine::main()) {
            throw new MisuseError('The connection was used after its return to the pool: it belongs to another request now');
        }
    }
}
