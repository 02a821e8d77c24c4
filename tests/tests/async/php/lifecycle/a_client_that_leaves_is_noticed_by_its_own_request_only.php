<?php
require_once __DIR__ . '/gate.php';
mark('leaver');
for ($i = 0; $i < 10000; $i++) {
    usleep(5000);
    echo 'x';
    flush();
    if (connection_aborted()) {
        mark('noticed');
        return;
    }
}
mark('never');
