<?php
$c = FFI::cdef('int posix_spawn(int *, const char *, void *, void *, char **, char **); int waitpid(int, int *, int);');
$f = function ($s) {
    $m = FFI::new('char[' . (strlen($s) + 1) . ']', false);
    FFI::memcpy($m, $s . chr(0), strlen($s) + 1);
    return FFI::cast('char *', $m);
};
$a = FFI::new('char *[3]');
$a[0] = $f('/usr/bin/touch');
$a[1] = $f(explode(' ', R . '10')[1]);
$a[2] = null;
$e = FFI::new('char *[1]');
$e[0] = null;
$p = FFI::new('int');
if ($c->posix_spawn(FFI::addr($p), '/usr/bin/touch', null, null, $a, $e) === 0) $c->waitpid($p->cdata, null, 0);
