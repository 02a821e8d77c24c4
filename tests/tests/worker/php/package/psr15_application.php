<?php
namespace {
    require __DIR__ . '/autoload.php';
    final class App implements Psr\Http\Server\RequestHandlerInterface {
        public int $n = 0;
        public function __construct(private $factory) {}
        public function handle(Psr\Http\Message\ServerRequestInterface $r): Psr\Http\Message\ResponseInterface {
            $this->n++;
            if (isset($r->getQueryParams()['throw'])) {
                throw new Exception('thrown on purpose');
            }
            $files = array_map(fn ($f) => [$f->getClientFilename(), $f->getSize(), md5((string) $f->getStream())], $r->getUploadedFiles()['f'] ?? []);
            $body = json_encode([$this->n, $r->getMethod(), (string) $r->getUri(), $r->getQueryParams(), $r->getParsedBody(), $r->getCookieParams(),
                $r->getHeaderLine('X-Mark'), strlen((string) $r->getBody()), $files, $r->getProtocolVersion(), $r->getServerParams()['REMOTE_ADDR']]);
            return $this->factory->createResponse(str_ends_with($r->getUri()->getPath(), 'gate.php') ? 200 : 203, 'Told')->withHeader('Content-Type', 'application/json')->withAddedHeader('X-Two', 'a')->withAddedHeader('X-Two', 'b') ->withAddedHeader('Set-Cookie', 'one=1')->withAddedHeader('Set-Cookie', 'two=2')->withBody($this->factory->createStream($body . str_repeat(' ', 200000)));
        }
    } (new Howdah\Runtime\Psr15Loop(new App(new FACTORY)))->run();
}
