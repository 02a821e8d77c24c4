<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

use Howdah\Octane\ServerProcessInspector;
use Howdah\Octane\StateFile;
use Laravel\Octane\Commands\StopCommand as OctaneStopCommand;
use Symfony\Component\Console\Attribute\AsCommand;

/** Octane's command, with support for the server "howdah". */
#[AsCommand(name: 'octane:stop')]
final class StopCommand extends OctaneStopCommand
{
    use ForHowdah;

    public function handle()
    {
        if (!$this->isForHowdah()) {
            return parent::handle();
        }
        $inspector = $this->laravel->make(ServerProcessInspector::class);
        $state = $this->laravel->make(StateFile::class);
        if (!$inspector->serverIsRunning()) {
            $state->delete();
            $this->error('Octane server is not running.');

            return 1;
        }
        $this->info('Stopping server...');
        if (!$inspector->stopServer()) {
            $this->error('Failed to stop the Octane server.');

            return 1;
        }
        $state->delete();

        return 0;
    }
}
