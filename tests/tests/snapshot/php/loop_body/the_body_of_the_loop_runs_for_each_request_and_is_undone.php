<?php
$after++;
$n += 10;
assert($more === true);
file_put_contents(__DIR__ . '/after.txt',
    json_encode([$n, $after, $_GET['k'] ?? null, http_response_code()]) . "\n", FILE_APPEND);
mark('after');
