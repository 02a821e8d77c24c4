<?php
if (isset($_GET['off'])) {
    $changed = ini_set('opcache.enable', '0') !== false;
} else {
    $changed = false;
}
echo json_encode([
    'changed' => $changed,
    'set' => (bool) ini_get('opcache.enable'),
    'works' => is_array(opcache_get_status(false)),
    'process' => getmypid(),
]);
