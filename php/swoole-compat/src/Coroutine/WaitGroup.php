<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

use Howdah\CancelledException;
use Howdah\MisuseError;
use Howdah\TimeoutException;

class WaitGroup
{
    private readonly \Howdah\WaitGroup $group;

    public function __construct(int $delta = 0)
    {
        $this->group = new \Howdah\WaitGroup();
        $this->add($delta);
    }

    public function add(int $delta = 1): void
    {
        try {
            $this->group->add($delta);
        } catch (MisuseError $error) {
            throw new \InvalidArgumentException('WaitGroup misuse: negative counter', 0, $error);
        }
    }

    public function done(): void
    {
        try {
            $this->group->done();
        } catch (MisuseError $error) {
            throw new \BadMethodCallException('WaitGroup misuse: negative counter', 0, $error);
        }
    }

    public function wait(float $timeout = -1): bool
    {
        try {
            $this->group->wait($timeout > 0 ? $timeout : null);
        } catch (TimeoutException|CancelledException) {
            return false;
        }

        return true;
    }

    public function count(): int
    {
        return \count($this->group);
    }
}
