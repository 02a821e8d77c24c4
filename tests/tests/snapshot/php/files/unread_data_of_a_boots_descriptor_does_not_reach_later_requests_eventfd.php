<?php
$libc = FFI::cdef('int eventfd(unsigned, int); long write(int, const void *, unsigned long); long read(int, void *, unsigned long);');
$event = $libc->eventfd(0, 0x800);
