<?php

// The panel and the toolbar's item in Symfony's own profiler. tests/tests/worker/profiler.rs tests them on the server.

declare(strict_types=1);

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

if (!require __DIR__ . '/support/app.php') {
    passthru(escapeshellarg(__DIR__ . '/../../../scripts/skips.sh') . ' --record profiler symfony "no php-symfony-web-profiler-bundle"', $status);
    exit($status);
}

$check = static function (bool $good, string $what, string $shown): void {
    if (!$good) {
        fwrite(STDERR, "profiler: $what: $shown\n");
        exit(1);
    }
};
App::$top = sys_get_temp_dir() . '/howdah-profiler-' . getmypid();
mkdir(App::$top);
register_shutdown_function(static fn () => exec('rm -rf ' . escapeshellarg(App::$top)));

$kernel = new App('test', true);
$page = static function (string $path, array $server = []) use ($kernel): Response {
    $request = Request::create($path, server: $server);
    $response = $kernel->handle($request);
    $kernel->terminate($request, $response);

    return $response;
};
$visit = static function (array $server) use ($page, $check): array {
    $home = $page('/', $server);
    $token = $home->headers->get('X-Debug-Token');
    $check($token !== null, 'no profile', (string) $home);
    $shown = [];
    foreach (["/_profiler/$token?panel=howdah", "/_wdt/$token"] as $path) {
        $response = $page($path);
        $check($response->getStatusCode() === 200, $path, $response->getStatusCode() . ' ' . strip_tags((string) $response->getContent()));
        $shown[] = (string) $response->getContent();
    }

    return $shown;
};

[$panel, $toolbar] = $visit(['SERVER_SOFTWARE' => 'nginx/1.22']);
$check(str_contains($panel, 'not served by Howdah but by nginx/1.22'), 'another server', $panel);
$check(!str_contains($toolbar, 'sf-toolbar-block-howdah'), 'no item in the toolbar', $toolbar);

eval('namespace Howdah; function mode() { return "snapshot"; } function request_id() { return "0123456789abcdef"; }');
[$panel, $toolbar] = $visit(['SERVER_SOFTWARE' => 'Howdah/0.1.0', 'REQUEST_TIME_FLOAT' => microtime(true) - 1.5]);
foreach (['Howdah/0.1.0', 'snapshot: each request begins', 'id=0123456789abcdef', (string) getmypid()] as $text) {
    $check(str_contains($panel, $text), $text, $panel);
}
$check(!str_contains($panel, 'Requests since the boot') && !str_contains($panel, 'autoloader'), 'details of other modes', $panel);
$check(str_contains($toolbar, 'sf-toolbar-block-howdah') && preg_match('/after 1[56789]\d\d\.\d ms/', $toolbar) === 1, 'the toolbar', $toolbar);
