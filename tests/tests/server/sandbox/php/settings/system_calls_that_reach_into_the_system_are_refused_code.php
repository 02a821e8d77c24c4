<?php
$c = FFI::cdef('int __DECLARATION__; int *__errno_location(void);');
$r = $c->__NAME__(__ARGUMENTS__);
echo $r, ' ', $c->__errno_location()[0];
