<?php
xdebug_start_code_coverage();
for ($i = 0; $i < 50; $i++) {
    f($i);
}
$c = xdebug_get_code_coverage();
echo C::$n, ' ', count($c[__DIR__ . '/boot.php'] ?? []), ' ', xdebug_info('mode')[0];
var_dump(new C);
