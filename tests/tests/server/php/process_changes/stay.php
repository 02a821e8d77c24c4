<?php
switch ($_GET['what']) {
    case 'connection':
        pfsockopen('127.0.0.1', (int) $_GET['port']);
        break;
    case 'name':
        FFI::cdef('int prctl(int option, const char *name);')->prctl(15, 'of a request');
        break;
    case 'thread':
        $libc = FFI::cdef(
            'int pthread_create(void *thread, const void *attributes, void *start, void *argument); int pause(void);'
        );
        $thread = FFI::new('unsigned long');
        $libc->pthread_create(FFI::addr($thread), null, FFI::cast('void *', $libc->pause), null);
        break;
}
echo 'done';
