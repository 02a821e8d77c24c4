<?php
foreach (['Runtime', 'HttpKernel'] as $part) {
    require "/usr/share/php/Symfony/Component/$part/autoload.php";
}
use Symfony\Component\HttpFoundation\{
    Request, Response
};
class Kernel implements Symfony\Component\HttpKernel\HttpKernelInterface, Symfony\Component\HttpKernel\TerminableInterface {
    public int $handled = 0;
    function handle(Request $request, int $type = 1, bool $catch = true): Response {
        $this->handled++;
        return new Response("$this->handled {$request->getPathInfo()} {$request->query->get('a')} {$request->request->get('b')} {$_SERVER['APP_ENV']} {$_SERVER['APP_RUNTIME_MODE']}", 202 - (int) ($request->getMethod() === 'GET') * 2);
    }
    function terminate(Request $request, Response $response): void {
        if ($request->query->has('hold')) {
            gate('g');
            mark('terminated-' . $response->getStatusCode());
        }
    }
}
$runtime = new Howdah\Runtime\Runtime(['env' => 'prod', 'disable_dotenv' => true, 'error_handler' => false]);
[$make, $arguments] = $runtime->getResolver(fn () => new Kernel)->resolve();
exit($runtime->getRunner($make(...$arguments))->run());
