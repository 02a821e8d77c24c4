<?php
mt_rand();
lcg_value();
random_bytes(4);
openssl_random_pseudo_bytes(4);
uniqid('', true);
$engine = class_exists('Random\Engine\Mt19937') ? new Random\Engine\Mt19937 : null;
$engine?->generate();
