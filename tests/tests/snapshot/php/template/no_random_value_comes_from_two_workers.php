<?php
$engine = new Random\Engine\Mt19937();
$randomizer = new Random\Randomizer();
mt_rand();
lcg_value();
random_bytes(4);
openssl_random_pseudo_bytes(8);
uniqid('', true);
