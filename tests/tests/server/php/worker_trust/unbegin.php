<?php
require 'gate.php';
mark('tries');
preg_match('/^([0-9a-f]+)-\S+ \S+ \S+ \S+ \S+\s+\/memfd:howdah-lane/m', file_get_contents('/proc/self/maps'), $lane);
$base = hexdec($lane[1]);
$c = FFI::cdef('void *memcpy(void *to, const void *from, unsigned long length);');
$read = function (int $at, string $type) use ($c, $base) {
    $value = FFI::new($type);
    $c->memcpy(FFI::addr($value), FFI::cast('void *', $base + $at), FFI::sizeof($value));
    return $value->cdata;
};
[$size, $tail] = [$read(12, 'uint32_t'), $read(256, 'uint64_t')];
$state = FFI::cast('void *', $base + 8192 + ($tail & ($size - 1)) + 16);
$c->memcpy($state, FFI::addr(FFI::new('uint32_t')), 4);
posix_kill(getmypid(), 9);
sleep(5);
