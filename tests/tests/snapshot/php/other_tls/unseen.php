<?php
$libc = FFI::cdef(
    'int socket(int domain, int type, int protocol);'
    . ' int connect(int fd, const char *address, unsigned length);'
    . ' long recv(int fd, void *data, size_t length, int flags);'
);
$unseen = $libc->socket(2, 1, 0);
$libc->connect($unseen, pack('vnNx8', 2, __PORT__, 0x7f000001), 16);
$welcome = FFI::new('char[7]');
$libc->recv($unseen, $welcome, 7, 0x100);
