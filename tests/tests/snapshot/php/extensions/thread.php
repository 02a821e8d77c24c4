<?php
$c = FFI::cdef('typedef unsigned long T; int pthread_create(T *t, void *a, void *start, void *x);
    int pthread_setname_np(T t, const char *n); void *dlsym(void *library, const char *name);', 'libc.so.6');
$t = $c->new('T');
$c->pthread_create(FFI::addr($t), null, $c->dlsym(null, 'pause'), null);
$c->pthread_setname_np($t->cdata, 'grpc_poller');
