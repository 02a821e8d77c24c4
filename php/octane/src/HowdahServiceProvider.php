<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Illuminate\Support\ServiceProvider;

/** Teaches Octane's commands the server "howdah". */
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
        // Behind Octane's provider, whose commands these take the place of.
        $this->app->booted(fn () => $this->commands([
            Commands\StartCommand::class,
            Commands\ReloadCommand::class,
            Commands\StatusCommand::class,
            Commands\StopCommand::class,
        ]));
    }
}
