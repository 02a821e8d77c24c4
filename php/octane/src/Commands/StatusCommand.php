<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

use Howdah\Octane\ServerProcessInspector;
use Laravel\Octane\Commands\StatusCommand as OctaneStatusCommand;
use Symfony\Component\Console\Attribute\AsCommand;

/** Octane's command, with support for the server "howdah", whose status it prints. */
#[AsCommand(name: 'octane:status')]
final class StatusCommand extends OctaneStatusCommand
{
    use ForHowdah;

    public function handle()
    {
        if (!$this->isForHowdah()) {
            return parent::handle();
        }
        $status = $this->laravel->make(ServerProcessInspector::class)->status();
        $this->info($status === null ? 'Octane server is not running.' : 'Octane server is running.');
        $status === null || $this->output->writeln(['', $status], $this->output::OUTPUT_RAW);

        return $status === null ? 1 : 0;
    }
}
