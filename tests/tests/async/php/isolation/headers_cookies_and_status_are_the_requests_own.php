<?php
$n = (int) preg_replace('/[^0-9]/', '', $m);
header("X-A: $m");
meet('a');
header("X-B: $m");
setcookie('k', $m);
meet('b');
http_response_code(220 + $n);
header_register_callback(function () use ($m) {
    usleep(500);
    header("X-C: $m");
    header_remove('X-Gone');
});
header('X-Gone: ' . $m);
meet('c');
echo implode('|', preg_grep('/^x-[ab]:/i', headers_list())), http_response_code() - 220;
