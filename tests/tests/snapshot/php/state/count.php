<?php
$unseeded = [new Random\Engine\Mt19937(), new Random\Engine\PcgOneseq128XslRr64(), new Random\Engine\Xoshiro256StarStar()];
$chosen = new Random\Engine\Mt19937(42);
$randomizer = new Random\Randomizer();
$letters = range('a', 'z');
mt_rand();
lcg_value();
random_bytes(4);
openssl_random_pseudo_bytes(8);
$handle = function () use ($unseeded, $chosen, $randomizer) {
    $letters = range('a', 'z');
    shuffle($letters);
    echo json_encode([mt_rand() . mt_rand(), rand() . rand(), random_int(0, PHP_INT_MAX), bin2hex(random_bytes(16)), implode($letters), uniqid('', true),
        lcg_value() . lcg_value(), bin2hex(openssl_random_pseudo_bytes(16)), session_create_id(), password_hash('x', PASSWORD_BCRYPT, ['cost' => 4]),
        ...array_map(fn ($e) => bin2hex($e->generate() . $e->generate()), $unseeded),
        bin2hex($randomizer->getBytes(16)), bin2hex((new Random\Engine\Mt19937())->generate() . (new Random\Engine\Xoshiro256StarStar())->generate()),
        str_shuffle('abcdefghijklmnopqrstuvwxyz'), implode(',', array_rand(range(1, 200), 40)), bin2hex($chosen->generate())]);
};
