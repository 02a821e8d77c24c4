<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

use Howdah\Scope;
use Swoole\Coroutine;

/** Collects coroutines, then starts them together. */
class Scheduler
{
    /** @var list<array{callable, array<mixed>}> */
    private array $functions = [];

    /** @param array<string, mixed> $settings */
    public function set(array $settings): bool
    {
        return Coroutine::set($settings);
    }

    public function add(callable $func, mixed ...$param): void
    {
        $this->functions[] = [$func, $param];
    }

    public function parallel(int $n, callable $func, mixed ...$param): void
    {
        while ($n-- > 0) {
            $this->add($func, ...$param);
        }
    }

    /** Starts them and waits until they have ended. */
    public function start(): bool
    {
        $functions = $this->functions;
        $this->functions = [];
        Scope::run(static function (Scope $scope) use ($functions): void {
            foreach ($functions as [$function, $arguments]) {
                $scope->go($function, ...$arguments);
            }
        });

        return true;
    }
}
