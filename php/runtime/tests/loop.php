<?php

// The loop's contract with the server, whose function is mocked here. tests/tests/worker/package.rs tests it on the server.

declare(strict_types=1);

use Howdah\Runtime\Loop;

require __DIR__ . '/../src/Loop.php';

$requests = 5;
function frankenphp_handle_request(callable $callback): bool
{
    global $requests;
    if ($requests-- <= 0) {
        return false;
    }
    $_SERVER = ['REQUEST_URI' => "/$requests", 'HTTP_HOST' => 'of the request', 'OWN' => 'of the request'];
    $callback();

    return true;
}

$check = static function (mixed $got, mixed $expected, string $what): void {
    if ($got !== $expected) {
        fwrite(STDERR, "loop: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
};

$check(Loop::isAvailable(), false, 'outside of a worker');
$_SERVER['FRANKENPHP_WORKER'] = '1';
$check(Loop::isAvailable(), true, 'in a worker');

$_SERVER = ['FROM_BOOT' => 'kept', 'OWN' => 'of the boot', 'HTTP_HOST' => 'of the boot', 'FRANKENPHP_WORKER' => '1'];
$seen = [];
$after = 0;
$handle = static function () use (&$seen): void {
    $seen[] = $_SERVER;
};
$ran = (new Loop(2))->run($handle, static function () use (&$after): void { ++$after; });
$check([$ran, $after], [2, 2], 'the limit');
$check($seen[0], ['REQUEST_URI' => '/4', 'HTTP_HOST' => 'of the request', 'OWN' => 'of the request', 'FROM_BOOT' => 'kept'], 'variables');
$check((new Loop())->run($handle), 3, 'until the server has no more');
