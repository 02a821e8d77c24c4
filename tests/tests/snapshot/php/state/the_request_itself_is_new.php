<?php
$handle = function () {
    echo json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST, $_SERVER['REQUEST_URI'],
        file_get_contents('php://input'), array_column($_FILES, 'size'), abs($_SERVER['REQUEST_TIME'] - time()) < 60]);
    foreach ($_FILES as $f) {
        header('X-Temp: ' . $f['tmp_name']);
    }
};
