<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

/** Decides whether a command of Octane's is about Howdah; every other server is left to Octane. */
trait ForHowdah
{
    private function isForHowdah(): bool
    {
        return ($this->option('server') ?: $this->laravel['config']->get('octane.server')) === 'howdah';
    }
}
