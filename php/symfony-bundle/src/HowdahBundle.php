<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle;

use Symfony\Component\HttpKernel\Bundle\Bundle;

/** A panel of the profiler. For the environments that have the profiler: `dev` and `test`. */
final class HowdahBundle extends Bundle
{
    public function getPath(): string
    {
        return \dirname(__DIR__);
    }
}
