<?php
require_once $_SERVER['DOCUMENT_ROOT'] . '/attack_lib.php';
$own = getmypid();
header('Content-Type: application/json');
if (isset($_GET['own'])) {
    // A process that anybody of the same user may look into: what the tests take for refused must be possible there.
    $other = proc_open(['sleep', '60'], [], $pipes);
    $pid = proc_get_status($other)['pid'];
    while (!str_contains(@file_get_contents("/proc/$pid/cmdline"), 'sleep')) usleep(1000);
    echo json_encode(attack($pid));
    proc_terminate($other, SIGKILL);
    proc_close($other);
} else {
    echo json_encode((int)$_GET['pid'] === $own ? ['self' => $own] : attack((int)$_GET['pid']));
}
