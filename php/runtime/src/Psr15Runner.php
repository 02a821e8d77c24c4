<?php

declare(strict_types=1);

namespace Howdah\Runtime;

use Psr\Http\Server\RequestHandlerInterface;
use Symfony\Component\Runtime\RunnerInterface;

/** The PSR-15 loop as a runner for Symfony's runtime component. */
final class Psr15Runner implements RunnerInterface
{
    private readonly Psr15Loop $psr15;

    public function __construct(RequestHandlerInterface $handler, Loop $loop)
    {
        $this->psr15 = new Psr15Loop($handler, $loop);
    }

    public function run(): int
    {
        $this->psr15->run();

        return 0;
    }
}
