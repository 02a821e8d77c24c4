<?php
require 'gate.php';
header('X-Accel-Buffering: no');
register_shutdown_function(fn () => mark('shutdown' . connection_status()));
echo 'begin';
flush();
gate('g');
for ($i = 0; $i < 5000; $i++) {
    echo str_repeat('x', 100000);
    flush();
    usleep(10000);
}
mark('end');
