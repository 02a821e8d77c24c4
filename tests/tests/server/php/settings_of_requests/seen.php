<?php
if (isset($_GET['set'])) {
    ini_set('precision', $_GET['set']);
}
$names = ['memory_limit', 'precision', 'max_execution_time', 'post_max_size', 'upload_max_filesize', 'display_errors'];
$names[] = 'session.gc_maxlifetime';
$settings = fn() => array_combine($names, array_map('ini_get', $names));
$before = $settings();
$between = isset($_GET['ask']) ? file_get_contents('http://127.0.0.1:' . $_SERVER['SERVER_PORT'] . $_GET['ask']) : null;
echo json_encode([
    'settings' => $before,
    'same' => $settings() === $before,
    'between' => $between === null ? null : json_decode($between)->settings,
    'posted' => $_POST !== [],
    'process' => getmypid(),
]);
