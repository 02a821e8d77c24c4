<?php
// As in Debian's package: one WordPress for several hosts, each with its own configuration.
$host = preg_replace('/:.*/', '', $_SERVER['HTTP_HOST']);
if (is_file(__DIR__ . "/config-$host.php")) {
    require __DIR__ . "/config-$host.php";
} else {
    header('HTTP/1.0 404 Not Found');
    exit(1);
}
if (isset($_SERVER['HTTP_X_FORWARDED_PROTO']) && $_SERVER['HTTP_X_FORWARDED_PROTO'] == 'https')
    $_SERVER['HTTPS'] = 'on';
