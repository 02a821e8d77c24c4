<?php

// The driver has every method of Revolt's interface. With Revolt installed (REVOLT=its directory), its own interface is
// checked, else this list of Revolt 1's.

declare(strict_types=1);

$methods = ['run', 'stop', 'getSuspension', 'isRunning', 'queue', 'defer', 'delay', 'repeat', 'onReadable', 'onWritable', 'onSignal',
    'enable', 'cancel', 'disable', 'reference', 'unreference', 'setErrorHandler', 'getErrorHandler', 'getHandle', 'getIdentifiers',
    'getType', 'isEnabled', 'isReferenced', '__debugInfo'];
if (is_string($revolt = getenv('REVOLT'))) {
    preg_match_all('/public function (\w+)\(/', file_get_contents("$revolt/src/EventLoop/Driver.php"), $found);
    $methods = $found[1];
}
preg_match_all('/public function (\w+)\(/', file_get_contents(__DIR__ . '/../src/Driver.php'), $there);
$missing = array_diff($methods, $there[1]);
if ($missing !== []) {
    fwrite(STDERR, 'interface: the driver lacks ' . implode(', ', $missing) . "\n");
    exit(1);
}
