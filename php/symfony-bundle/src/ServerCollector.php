<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\DataCollector\DataCollector;

/** Howdah's data about the running request. Under another server, only that server's name. */
final class ServerCollector extends DataCollector
{
    public function __construct(private readonly Moments $moments)
    {
        $this->reset();
    }

    public function collect(Request $request, Response $response, ?\Throwable $exception = null): void
    {
        $this->data = ['howdah' => \function_exists('Howdah\mode'), 'software' => (string) $request->server->get('SERVER_SOFTWARE', PHP_SAPI)];
        if (!$this->data['howdah']) {
            return;
        }
        $began = $this->moments->began();
        $arrived = $request->server->get('REQUEST_TIME_FLOAT');
        $this->data += [
            'mode' => \Howdah\mode(),
            'id' => \Howdah\request_id(),
            'process' => (int) getmypid(),
            'waited' => $began === null || $arrived === null ? null : max(0.0, ($began - (float) $arrived) * 1000),
            'ran' => $began === null ? null : (microtime(true) - $began) * 1000,
            'memory' => memory_get_peak_usage(),
            'requests' => $this->moments->requests(),
        ];
    }

    public function reset(): void
    {
        $this->data = ['howdah' => false, 'software' => ''];
    }

    public function getName(): string
    {
        return 'howdah';
    }

    public function isHowdah(): bool
    {
        return $this->data['howdah'];
    }

    /** Returns `SERVER_SOFTWARE`, or the name of PHP's SAPI. */
    public function getSoftware(): string
    {
        return $this->data['software'];
    }

    /** Returns "classic", "worker", "snapshot" or "async". */
    public function getMode(): ?string
    {
        return $this->data['mode'] ?? null;
    }

    /** Returns the request's id in the server's logs. */
    public function getId(): ?string
    {
        return $this->data['id'] ?? null;
    }

    /** Returns the worker's process id. */
    public function getProcess(): ?int
    {
        return $this->data['process'] ?? null;
    }

    /** Returns the milliseconds from the request's arrival at the server until Symfony began handling it. */
    public function getWaited(): ?float
    {
        return $this->data['waited'] ?? null;
    }

    /** Returns the milliseconds from then until the response was created. */
    public function getRan(): ?float
    {
        return $this->data['ran'] ?? null;
    }

    /** Returns PHP's peak memory usage, in bytes. */
    public function getMemory(): ?int
    {
        return $this->data['memory'] ?? null;
    }

    /** Returns the number of requests that this application has begun since its boot, including this one. */
    public function getRequests(): ?int
    {
        return $this->data['requests'] ?? null;
    }
}
