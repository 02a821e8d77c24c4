<?php
$c = FFI::cdef('long syscall(long, ...); int *__errno_location(void);');
echo $c->syscall(435, null, 0), ' ', $c->__errno_location()[0];
