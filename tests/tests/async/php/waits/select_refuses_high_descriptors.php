<?php
$held = [];
for ($i = 0; $i < 1100; $i++) {
    $held[] = fopen('/dev/null', 'r');
}
$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
fwrite($pair[0], 'x');
$r = [$pair[1]];
$w = $e = null;
echo var_export(@stream_select($r, $w, $e, 1), true), ' ', preg_replace('/[0-9]+/', 'N', error_get_last()['message'] ?? 'no error');
