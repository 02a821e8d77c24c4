<?php
echo json_encode([mt_rand() . mt_rand(), rand() . rand(), random_int(0, PHP_INT_MAX), bin2hex(random_bytes(16)),
    uniqid('', true), lcg_value() . lcg_value(), bin2hex(openssl_random_pseudo_bytes(16)), session_create_id(),
    password_hash('x', PASSWORD_BCRYPT, ['cost' => 4]), bin2hex($engine->generate() . $engine->generate()),
    bin2hex($GLOBALS['randomizer']->getBytes(16)), str_shuffle('abcdefghijklmnopqrstuvwxyz'), getmypid()]);
