<?php
global $engine;
$all = [];
for ($i = 0; $i < 20; $i++) {
    $all[] = 'mt:' . mt_rand() . ',' . mt_rand();
    $all[] = 'rand:' . rand() . ',' . rand();
    $all[] = 'int:' . random_int(0, PHP_INT_MAX);
    $all[] = 'bytes:' . bin2hex(random_bytes(8));
    $all[] = 'uniqid:' . uniqid('', true);
    $all[] = 'lcg:' . lcg_value() . ',' . lcg_value();
    $all[] = 'ssl:' . bin2hex(openssl_random_pseudo_bytes(8));
    $all[] = 'shuffle:' . (function () {
        $a = range(1, 30);
        shuffle($a);
        return join('.', $a);
    })();
    if ($engine) {
        $all[] = 'engine:' . bin2hex($engine->generate()) . bin2hex($engine->generate());
    }
}
session_start();
$all[] = 'session:' . session_id();
session_destroy();
$all[] = 'hash:' . password_hash('x', PASSWORD_BCRYPT, ['cost' => 4]);
echo join("\n", $all);
