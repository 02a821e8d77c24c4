<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Illuminate\Support\ServiceProvider;

/** Adds the server "howdah" to Octane's commands. */
final class HowdahServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(\dirname(__DIR__) . '/config/howdah.php', 'howdah');
        $this->app->bind(Binary::class, static fn ($app) => new Binary($app['config']->get('howdah.binary'), $app->basePath()));
        $this->app->bind(StateFile::class, static function ($app) {
            $path = $app['config']->get('octane.state_file') ?? $app->storagePath() . '/logs/octane-server-state.json';

            return new StateFile($path);
        });
    }

    public function boot(): void
    {
        if (!$this->app->runningInConsole()) {
            return;
        }
        $this->publishes([\dirname(__DIR__) . '/config/howdah.php' => $this->app->configPath('howdah.php')], 'howdah-config');
        // After Octane's provider, because these commands replace Octane's.
        $this->app->booted(fn () => $this->commands([
            Commands\StartCommand::class,
            Commands\ReloadCommand::class,
            Commands\StatusCommand::class,
            Commands\StopCommand::class,
        ]));
    }
}
