<?php
// Keeps the variables of each warm-up request, by its target, and returns them to visitors of that target.
$warm = [];
$handle = function () {
    global $warm;
    if (($_SERVER['HTTP_USER_AGENT'] ?? '') === 'Howdah warm-up') {
        $warm[$_SERVER['REQUEST_URI']] = $_SERVER;
        return;
    }
    echo json_encode(['warm' => $warm[$_SERVER['REQUEST_URI']] ?? null, 'visitor' => $_SERVER, 'all' => array_keys($warm)]);
};
while (frankenphp_handle_request($handle)) {
}
