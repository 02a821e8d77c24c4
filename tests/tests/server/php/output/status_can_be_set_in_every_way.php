<?php
match ($_GET['how']) {
    'code' => http_response_code(404),
    'line' => header('HTTP/1.1 418 I am a teapot'),
    'http10' => header('HTTP/1.0 503 Service Unavailable'),
    'status' => header('Status: 451 Legal'),
    'third' => header('X-A: b', true, 202),
    'location' => header('Location: /elsewhere'),
    'created' => [header('Location: /new', true, 201)],
    'seeother' => header('Location: /x', true, 303),
    'none' => null,
};
echo 'body';
