<?php

declare(strict_types=1);

namespace Howdah\Runtime;

use Psr\Http\Server\RequestHandlerInterface;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime;

/**
 * Symfony's runtime with a loop around the application in a worker of Howdah or FrankenPHP; elsewhere it is Symfony's
 * runtime unchanged.
 *
 * Selected by `APP_RUNTIME=Howdah\Runtime\Runtime` or in composer.json (`extra.runtime.class`). Symfony 7.4 has its own loop
 * and does not need it. The option `worker_loop_max` (or the variable FRANKENPHP_LOOP_MAX) ends the script after that number
 * of requests; by default, the server's `max_requests` decides.
 */
class Runtime extends SymfonyRuntime
{
    private readonly int $limit;

    /** @param array<string, mixed> $options */
    public function __construct(array $options = [])
    {
        $this->limit = (int) ($options['worker_loop_max'] ?? $_SERVER['FRANKENPHP_LOOP_MAX'] ?? $_ENV['FRANKENPHP_LOOP_MAX'] ?? 0);
        parent::__construct($options);
    }

    public function getRunner(?object $application): RunnerInterface
    {
        if (Loop::isAvailable()) {
            if ($application instanceof HttpKernelInterface) {
                return new KernelRunner($application, new Loop($this->limit));
            }
            if ($application instanceof RequestHandlerInterface) {
                return new Psr15Runner($application, new Loop($this->limit));
            }
        }

        return parent::getRunner($application);
    }
}
