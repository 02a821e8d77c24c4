<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Laravel\Octane\Contracts\StoppableClient;
use Laravel\Octane\Octane;
use Laravel\Octane\OctaneResponse;
use Laravel\Octane\RequestContext;
use Symfony\Component\HttpFoundation\Response;
use Throwable;

/** Connects Octane with the client of a request: superglobals and PHP's output, which Howdah provides per request. */
final class HowdahClient implements StoppableClient
{
    private bool $stopped = false;

    /** @return array{Request, RequestContext} */
    public function marshalRequest(RequestContext $context): array
    {
        return [Request::capture(), $context];
    }

    public function respond(RequestContext $context, OctaneResponse $octaneResponse): void
    {
        $response = $octaneResponse->response;
        $printed = (string) $octaneResponse->outputBuffer;
        if ($printed === '') {
            $response->send();

            return;
        }
        // As under PHP-FPM: output printed by the application precedes its response.
        $response->headers->remove('Content-Length');
        $response->sendHeaders();
        echo $printed;
        $response->sendContent();
        \function_exists('fastcgi_finish_request') && fastcgi_finish_request();
    }

    public function error(Throwable $e, Application $app, Request $request, RequestContext $context): void
    {
        $debug = (bool) $app->make('config')->get('app.debug');
        (new Response(Octane::formatExceptionForClient($e, $debug), 500, ['Content-Type' => 'text/plain']))->send();
    }

    /** Octane calls this when an error may have left the worker in an unreliable state. */
    public function stop(): void
    {
        $this->stopped = true;
    }

    public function isStopped(): bool
    {
        return $this->stopped;
    }
}
