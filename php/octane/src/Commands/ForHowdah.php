<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

/** Decides whether a command of Octane's applies to Howdah; all other servers are left to Octane. */
trait ForHowdah
{
    private function isForHowdah(): bool
    {
        return ($this->option('server') ?: $this->laravel['config']->get('octane.server')) === 'howdah';
    }
}
