<?php
require_once __DIR__ . '/gate.php';
if (isset($_GET['forks'])) {
    $c = FFI::cdef('int fork(void); void _exit(int); int waitpid(int, int *, int);');
    $begun = microtime(true);
    $pid = $c->fork();
    if ($pid === 0) {
        usleep(50000);
        sleep(0);
        $c->_exit(microtime(true) - $begun >= 0.05 ? 7 : 8);
    }
    $status = $c->new('int');
    $c->waitpid($pid, FFI::addr($status), 0);
    echo $status->cdata >> 8;
} else {
    usleep(20000);
    mark("went$m");
}
echo $m;
