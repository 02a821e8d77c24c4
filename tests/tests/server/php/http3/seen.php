<?php
header('X-Script: yes');
echo json_encode([
    'protocol' => $_SERVER['SERVER_PROTOCOL'],
    'https' => $_SERVER['HTTPS'] ?? '',
    'scheme' => $_SERVER['REQUEST_SCHEME'],
    'host' => $_SERVER['HTTP_HOST'] ?? '',
    'server' => $_SERVER['SERVER_NAME'] . ':' . $_SERVER['SERVER_PORT'],
    'client' => $_SERVER['REMOTE_ADDR'],
    'method' => $_SERVER['REQUEST_METHOD'],
    'uri' => $_SERVER['REQUEST_URI'],
    'cookie' => $_COOKIE,
    'early' => $_SERVER['HTTP_EARLY_DATA'] ?? '',
    'tls' => $_SERVER['SSL_PROTOCOL'] ?? '',
    'name' => $_SERVER['SSL_SERVER_NAME'] ?? '',
]);
