<?php
require_once $_SERVER['DOCUMENT_ROOT'] . '/attack_lib.php';
$own = getmypid();
header('Content-Type: application/json');
if (isset($_GET['own'])) {
    // A process that any process of the same user may inspect: attacks that the tests expect to be refused must succeed there.
    $other = proc_open(['sleep', '60'], [], $pipes);
    $pid = proc_get_status($other)['pid'];
    while (!str_contains(@file_get_contents("/proc/$pid/cmdline"), 'sleep')) usleep(1000);
    echo json_encode(attack($pid));
    proc_terminate($other, SIGKILL);
    proc_close($other);
} else {
    echo json_encode((int)$_GET['pid'] === $own ? ['self' => $own] : attack((int)$_GET['pid']));
}
