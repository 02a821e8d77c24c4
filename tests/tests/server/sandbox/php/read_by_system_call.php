<?php
$c = FFI::cdef('long syscall(long, ...); long read(int, void *, long);');
$b = FFI::new('char[100]');
$fd = $c->syscall(PHP_OS_FAMILY === 'Linux' && php_uname('m') === 'aarch64' ? 56 : 257, -100, F, 0);
$n = $c->read($fd, $b, 99);
return $n > 0 ? FFI::string($b, $n) : false;
