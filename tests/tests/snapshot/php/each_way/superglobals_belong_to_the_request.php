<?php
global $booted;
echo json_encode([$_GET, $_POST, $_COOKIE, file_get_contents('php://input'),
    $_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI'], $_SERVER['HTTP_X_MARK'] ?? null, $_SERVER['REQUEST_TIME_FLOAT'] > $booted]);
header('X-Mark: ' . ($_GET['a'] ?? 'none'));
http_response_code(isset($_GET['a']) ? 201 : 200);
