<?php
/**
 * A Symfony application in snapshot mode: howdah serve public --mode snapshot --script public/symfony-worker.php
 *
 * The kernel boots once, with the variables of `.env` as Symfony's own front controller loads them. Set `warmup` in
 * howdah.toml to a few typical paths, so that the services they use are in the snapshot. Changes by requests are
 * undone. After the warm-up the kernel resets its services (`kernel.reset`), and the server compares two visitors
 * before it serves. If `.env` changes or the container is rebuilt (cache:clear, or in debug mode after a change of its
 * sources), the application boots again before the next request.
 */

use Symfony\Component\Config\ConfigCache;
use Symfony\Component\Dotenv\Dotenv;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/vendor/autoload.php';

$variables = dirname(__DIR__) . '/.env';
if (class_exists(Dotenv::class) && (is_file($variables) || is_file("$variables.local.php"))) {
    (new Dotenv())->bootEnv($variables, 'prod');
}
$kernel = new App\Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
$kernel->boot();

$container = $kernel->getBuildDir() . '/' . (new ReflectionObject($kernel->getContainer()))->getShortName() . '.php';
$sources = [$container, $variables];
foreach (['.local', '.local.php', '.' . $kernel->getEnvironment(), '.' . $kernel->getEnvironment() . '.local'] as $suffix) {
    $sources[] = $variables . $suffix;
}
$state = static function () use ($sources): array {
    clearstatcache();

    return array_map(static fn (string $file): string => @filemtime($file) . ' ' . @fileinode($file), $sources);
};
$booted = $state();
Howdah\on_restore(static function () use ($container, $state, $booted, $kernel): void {
    $now = $state();
    if ($now[0] !== $booted[0] || ($kernel->isDebug() && !(new ConfigCache($container, true))->isFresh())) {
        Howdah\boot_again('the container was built anew');
    }
    if ($now !== $booted) {
        Howdah\boot_again('.env has changed');
    }
});

// boot() of a kernel that has handled requests resets its services.
Howdah\after_warmup(static fn () => $kernel->boot());

$answered = null;
$handle = static function () use ($kernel, &$answered): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $answered = [$request, $response];
    $response->send();
};

while (frankenphp_handle_request($handle)) {
    // The client has its response.
    if ($answered !== null) {
        $kernel->terminate(...$answered);
        $answered = null;
    }
}
