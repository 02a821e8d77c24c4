<?php
$user = posix_getpwuid(posix_geteuid())['name'];
echo json_encode([
    'user' => $user,
    'group' => posix_getgrgid(posix_getegid())['name'],
    'env' => getenv('POOL'),
    'cleared' => getenv('OUTSIDE') === false,
    'memory' => ini_get('memory_limit'),
    'may_change' => ini_set('memory_limit', '64M') !== false,
    'display' => ini_get('display_errors'),
    'precision' => ini_get('precision'),
    'sapi' => PHP_SAPI,
    'finish' => function_exists('fastcgi_finish_request'),
    'cwd' => basename(getcwd()),
    'ini' => php_ini_loaded_file(),
]);
