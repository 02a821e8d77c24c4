<?php
$c = FFI::cdef('int memfd_create(const char *, int); int execv(const char *, char **);');
$fd = $c->memfd_create('x', 0);
echo $fd;
