<?php
session_start();
echo json_encode([mt_rand() . mt_rand(), lcg_value(), uniqid('', true), bin2hex(random_bytes(8)), session_id(),
    bin2hex(openssl_random_pseudo_bytes(8)), password_hash('x', PASSWORD_BCRYPT, ['cost' => 4]), spl_object_hash(new stdClass) . hrtime(true)]);
