<?php
require_once __DIR__ . '/gate.php';
ignore_user_abort(true);
gate('ignore');
for ($i = 0; $i < 10000 && !connection_aborted(); $i++) {
    echo 'x';
    flush();
    usleep(5000);
}
mark(connection_aborted() ? 'ignored' : 'unaware');
