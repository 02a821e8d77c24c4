<?php

declare(strict_types=1);

namespace Howdah\Runtime;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpCache\HttpCache;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Symfony\Component\Runtime\RunnerInterface;

/** Runs a Symfony kernel for one request after the other; `terminate()` runs once the client has its response. */
final class KernelRunner implements RunnerInterface
{
    private ?Request $request = null;
    private ?Response $response = null;

    public function __construct(private readonly HttpKernelInterface $kernel, private readonly Loop $loop)
    {
    }

    public function run(): int
    {
        // As in Symfony's own worker runner: this makes ErrorHandler and VarDumper respond in HTML.
        $_SERVER['APP_RUNTIME_MODE'] = $_ENV['APP_RUNTIME_MODE'] = 'web=1&worker=1';
        if (\function_exists('Howdah\after_warmup')) {
            \Howdah\after_warmup($this->reset(...));
        }
        $this->loop->run($this->handle(...), $this->terminate(...));

        return 0;
    }

    private function handle(): void
    {
        $_SERVER += ['APP_RUNTIME_MODE' => 'web=1&worker=1'];
        $request = Request::createFromGlobals();
        $response = $this->kernel->handle($request);
        // Only a request with a response is terminated.
        [$this->request, $this->response] = [$request, $response];
        $response->send();
    }

    /**
     * Resets the kernel after the warm-up of snapshot mode. A kernel that has handled requests resets its services when it
     * is booted again.
     */
    private function reset(): void
    {
        $kernel = $this->kernel;
        while ($kernel instanceof HttpCache) {
            $kernel = $kernel->getKernel();
        }
        if ($kernel instanceof KernelInterface) {
            $kernel->boot();
        }
    }

    private function terminate(): void
    {
        [$request, $response] = [$this->request, $this->response];
        $this->request = $this->response = null;
        if ($request !== null && $response !== null && $this->kernel instanceof TerminableInterface) {
            $this->kernel->terminate($request, $response);
        }
    }
}
