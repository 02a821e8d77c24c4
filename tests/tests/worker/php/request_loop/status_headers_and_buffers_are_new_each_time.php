<?php
$handle = function () {
    if (isset($_GET['set'])) {
        http_response_code(418);
        header('X-Left: 1');
        header('Content-Type: text/x');
        setcookie('left', '1');
        ob_start();
        ob_start(fn ($b) => strtoupper($b));
    }
    echo 'out', ob_get_level();
};
