<?php

// Data of the collector, without and with Howdah's functions, on Debian's Symfony (or SYMFONY=an autoloader).

declare(strict_types=1);

use Howdah\SymfonyBundle\Moments;
use Howdah\SymfonyBundle\ServerCollector;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\HttpKernelInterface;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
set_include_path('/usr/share/php');
$symfony = getenv('SYMFONY') ?: '/usr/share/php/Symfony/Component/HttpKernel/autoload.php';
if (!is_file($symfony)) {
    passthru(escapeshellarg(__DIR__ . '/../../../scripts/skips.sh') . ' --record collector symfony "no HttpKernel"', $status);
    exit($status);
}
require $symfony;
require __DIR__ . '/../src/Moments.php';
require __DIR__ . '/../src/ServerCollector.php';

$check = static function (mixed $got, mixed $expected, string $what): void {
    if ($got !== $expected) {
        fwrite(STDERR, "collector: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
};
$kernel = new class () implements HttpKernelInterface {
    public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = true): Response
    {
        return new Response();
    }
};

$moments = new Moments();
$collector = new ServerCollector($moments);
$request = Request::create('/', server: ['SERVER_SOFTWARE' => 'nginx/1.22', 'REQUEST_TIME_FLOAT' => microtime(true) - 0.25]);
$collector->collect($request, new Response());
$check([$collector->isHowdah(), $collector->getSoftware(), $collector->getMode(), $collector->getWaited()], [false, 'nginx/1.22', null, null], 'elsewhere');

eval('namespace Howdah; function mode() { return "worker"; } function request_id() { return "0123456789abcdef"; }');
$moments->onRequest(new RequestEvent($kernel, $request, HttpKernelInterface::MAIN_REQUEST));
$moments->onRequest(new RequestEvent($kernel, $request, HttpKernelInterface::SUB_REQUEST));
$collector->collect($request, new Response());
$check([$collector->isHowdah(), $collector->getMode(), $collector->getId(), $collector->getProcess(), $collector->getRequests()],
    [true, 'worker', '0123456789abcdef', getmypid(), 1], 'under Howdah');
$waited = $collector->getWaited();
$check($waited > 250.0 && $waited < 60000.0, true, "waited for $waited ms");
$check($collector->getRan() >= 0.0 && $collector->getMemory() > 0, true, 'times and memory');
$copy = unserialize(serialize($collector));
$check([$copy->getMode(), $copy->getWaited()], ['worker', $waited], 'a profile that was stored');
$collector->reset();
$check([$collector->isHowdah(), $collector->getMode()], [false, null], 'after a reset');
// A clock that was set back must not show a negative wait.
$late = Request::create('/', server: ['REQUEST_TIME_FLOAT' => microtime(true) + 100]);
$collector->collect($late, new Response());
$check($collector->getWaited(), 0.0, 'a clock that was set back');
