<?php
__ODD__;
if ($odd) {
    openssl_pkey_get_private("no key of $m");
}
meet('a');
$n = 0;
while (openssl_error_string() !== false) {
    $n++;
}
echo ($n > 0) === $odd ? $m : "$n errors";
