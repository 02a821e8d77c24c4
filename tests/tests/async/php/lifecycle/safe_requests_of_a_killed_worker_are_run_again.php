<?php
require_once __DIR__ . '/gate.php';
if (mark("tries$m") === 1) {
    mark('begun');
    sleep(60);
}
echo $m;
