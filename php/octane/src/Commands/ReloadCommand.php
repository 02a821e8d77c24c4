<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

use Howdah\Octane\ServerProcessInspector;
use Laravel\Octane\Commands\ReloadCommand as OctaneReloadCommand;
use Symfony\Component\Console\Attribute\AsCommand;

/** Octane's command, with support for the server "howdah". */
#[AsCommand(name: 'octane:reload')]
final class ReloadCommand extends OctaneReloadCommand
{
    use ForHowdah;

    public function handle()
    {
        if (!$this->isForHowdah()) {
            return parent::handle();
        }
        $inspector = $this->laravel->make(ServerProcessInspector::class);
        if (!$inspector->serverIsRunning()) {
            $this->error('Octane server is not running.');

            return 1;
        }
        $this->info('Reloading workers...');
        try {
            $inspector->reloadServer();
        } catch (\RuntimeException $failure) {
            $this->error('The old workers continue: ' . $failure->getMessage());

            return 1;
        }

        return 0;
    }
}
