<?php

/* A coroutine in a WaitQueue. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;

final class Waiter
{
    public bool $served = false;
    public bool $refused = false;
    public mixed $answer = null;
    /** @var Waiter|null untyped, because PHP would look up the class at each assignment */
    public $before = null;
    /** @var Waiter|null */
    public $after = null;

    public function __construct(public readonly Coroutine $coroutine, public readonly mixed $offer)
    {
    }
}
