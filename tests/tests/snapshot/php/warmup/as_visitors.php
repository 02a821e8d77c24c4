<?php
// Keeps what each request of the warm-up sees, by its target, and tells it to whoever asks for the same.
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
