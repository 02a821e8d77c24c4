<?php
require_once __DIR__ . '/gate.php';
if (isset($_GET['late'])) {
    try {
        sleep(60);
    } finally {
        mark('unwound');
    }
}
usleep(200000);
echo $m;
