<?php
$c = FFI::cdef('int socket(int, int, int); long sendto(int, const char *, long, int, char *, unsigned);');
$a = FFI::new('char[16]');
FFI::memcpy($a, pack('vnNNN', 2, P, 0x7f000001, 0, 0), 16);
return $c->sendto($c->socket(2, 1, 0), 'hello', 5, 0x20000000, $a, 16) >= 0;
