<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle;

use Symfony\Component\HttpKernel\Bundle\Bundle;

/** A panel for the profiler. For environments with the profiler: `dev` and `test`. */
final class HowdahBundle extends Bundle
{
    public function getPath(): string
    {
        return \dirname(__DIR__);
    }
}
