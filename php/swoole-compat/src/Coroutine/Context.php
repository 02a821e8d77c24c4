<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

/** @extends \ArrayObject<array-key, mixed> */
class Context extends \ArrayObject
{
    public function __construct()
    {
        parent::__construct([], self::ARRAY_AS_PROPS);
    }
}
