<?php
/* Runs the cases of the async library. Each is a file that returns a function, called in a request with $is (name, got,
 * expected) and $error (short name of a function's exception). Responds with the number of checks and the failures. */
use function Howdah\handle_request;

require __DIR__ . '/gate.php';
$error = static function (callable $function): string {
    try {
        $function();
    } catch (Throwable $thrown) {
        return (new ReflectionClass($thrown))->getShortName();
    }
    return 'none';
};
handle_request(static function () use ($error): void {
    if (!isset($_GET['case'])) {
        // The test's readiness check.
        return;
    }
    $checks = 0;
    $wrong = [];
    $is = static function (string $name, mixed $got, mixed $expected) use (&$checks, &$wrong): void {
        $checks++;
        if ($got !== $expected) {
            $wrong[] = "$name: " . var_export($got, true) . ' instead of ' . var_export($expected, true);
        }
    };
    try {
        (require __DIR__ . "/{$_GET['case']}.php")($is, $error);
    } catch (Throwable $thrown) {
        $wrong[] = (string) $thrown;
    }
    echo json_encode(['checks' => $checks, 'wrong' => $wrong]);
});
