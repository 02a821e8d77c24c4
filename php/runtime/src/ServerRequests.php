<?php

declare(strict_types=1);

namespace Howdah\Runtime;

use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UploadedFileInterface;
use Psr\Http\Message\UriFactoryInterface;

/** Creates PSR-7 requests from PHP's superglobals. */
final class ServerRequests
{
    /** Packages that have one factory for everything, and packages that have one for each kind of object. */
    private const FACTORIES = ['Nyholm\Psr7\Factory\Psr17Factory', 'GuzzleHttp\Psr7\HttpFactory'];
    private const NAMESPACES = ['Slim\Psr7\Factory', 'Laminas\Diactoros'];

    public function __construct(
        private readonly ServerRequestFactoryInterface $requests,
        private readonly UriFactoryInterface $uris,
        private readonly StreamFactoryInterface $streams,
        private readonly UploadedFileFactoryInterface $files,
    ) {
    }

    /** Uses the first of these packages that is installed. */
    public static function withInstalledFactory(): self
    {
        foreach (self::FACTORIES as $class) {
            if (class_exists($class)) {
                $factory = new $class();

                return new self($factory, $factory, $factory, $factory);
            }
        }
        foreach (self::NAMESPACES as $namespace) {
            if (class_exists("$namespace\ServerRequestFactory")) {
                $make = static fn (string $kind): object => new ("$namespace\\{$kind}Factory")();

                return new self($make('ServerRequest'), $make('Uri'), $make('Stream'), $make('UploadedFile'));
            }
        }
        throw new \LogicException('No PSR-17 factory is installed: require nyholm/psr7, or pass a ServerRequests with your own factories.');
    }

    public function fromGlobals(): ServerRequestInterface
    {
        $request = $this->requests->createServerRequest($_SERVER['REQUEST_METHOD'] ?? 'GET', $this->uri(), $_SERVER);
        foreach (getallheaders() as $name => $value) {
            $request = $request->withHeader((string) $name, $value);
        }
        $version = explode('/', $_SERVER['SERVER_PROTOCOL'] ?? 'HTTP/1.1')[1] ?? '1.1';
        $request = $request
            ->withProtocolVersion($version)
            ->withCookieParams($_COOKIE)
            ->withQueryParams($_GET)
            ->withUploadedFiles($this->uploads($_FILES))
            ->withBody($this->streams->createStreamFromFile('php://input'));

        // PHP has parsed forms; the application parses everything else.
        $type = strtolower(trim(explode(';', $_SERVER['CONTENT_TYPE'] ?? '')[0]));
        $isForm = $type === 'application/x-www-form-urlencoded' || $type === 'multipart/form-data';

        return $isForm ? $request->withParsedBody($_POST) : $request;
    }

    private function uri(): string
    {
        $scheme = ($_SERVER['HTTPS'] ?? '') !== '' && strtolower($_SERVER['HTTPS']) !== 'off' ? 'https' : 'http';
        $host = $_SERVER['HTTP_HOST'] ?? $_SERVER['SERVER_NAME'] ?? 'localhost';
        $target = $_SERVER['REQUEST_URI'] ?? '/';

        return str_starts_with($target, '/') ? "$scheme://$host$target" : $target;
    }

    /**
     * @param array<array-key, mixed> $files as in $_FILES
     *
     * @return array<array-key, mixed> uploaded files in the structure of the form's names
     */
    private function uploads(array $files): array
    {
        return array_map(fn (array $file) => $this->upload($file), $files);
    }

    /** @param array<string, mixed> $file */
    private function upload(array $file): array|UploadedFileInterface
    {
        if (\is_array($file['tmp_name'])) {
            // PHP turns name[a][b] inside out: each property is a separate tree.
            $branches = [];
            foreach (array_keys($file['tmp_name']) as $key) {
                $branches[$key] = $this->upload(array_map(static fn ($tree) => \is_array($tree) ? $tree[$key] ?? null : null, $file));
            }

            return $branches;
        }
        $failed = $file['error'] !== \UPLOAD_ERR_OK;
        $stream = $failed ? $this->streams->createStream() : $this->streams->createStreamFromFile($file['tmp_name']);

        return $this->files->createUploadedFile($stream, $file['size'], $file['error'], $file['name'], $file['type']);
    }
}
