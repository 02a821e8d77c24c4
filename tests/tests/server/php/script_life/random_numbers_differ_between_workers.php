<?php
echo mt_rand(), ' ', rand(), ' ', lcg_value(), ' ', bin2hex(random_bytes(8)), ' ', uniqid('', true), ' ', bin2hex(openssl_random_pseudo_bytes(8));
