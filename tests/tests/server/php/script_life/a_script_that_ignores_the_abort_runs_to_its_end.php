<?php
require 'gate.php';
ignore_user_abort(true);
header('X-Accel-Buffering: no');
echo 'begin';
flush();
gate('g');
for ($i = 0; $i < 5000 && !connection_aborted(); $i++) {
    echo str_repeat('x', 100000);
    flush();
    usleep(10000);
}
mark(connection_aborted() ? 'aborted' : 'normal');
mark('end');
