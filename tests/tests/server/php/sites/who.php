<?php
echo json_encode([
    'root' => basename($_SERVER['DOCUMENT_ROOT']),
    'name' => $_SERVER['SERVER_NAME'],
    'host' => $_SERVER['HTTP_HOST'] ?? null,
    'script' => $_SERVER['SCRIPT_FILENAME'],
    'info' => $_SERVER['PATH_INFO'] ?? '',
    'pool' => getenv('POOL') ?: 'default',
    'user' => posix_geteuid(),
]);
