<?php
/* One request: does what `do` names, then reports. For classic mode, and as a worker script. */

require_once __DIR__ . '/application.php';

$kinds = require __DIR__ . '/language.php';
$kinds += require __DIR__ . '/library.php';
$handle = static function () use ($kinds): void {
    $mark = $_GET['m'];
    $GLOBALS['own'] = $mark;
    foreach (explode(',', $_GET['do']) as $name) {
        echo "\n$name: ";
        pause();
        $kinds[$name]($mark);
    }
    pause();
    report($mark);
};

if (!WAITS) {
    $handle();
} else {
    while (frankenphp_handle_request($handle)) {
    }
}
