<?php
echo json_encode([
    'connection' => count(array_filter(glob('/proc/self/fd/*'), fn ($fd) => str_starts_with((string) @readlink($fd), 'socket'))),
    'name' => trim(file_get_contents('/proc/self/comm')),
    'thread' => count(glob('/proc/self/task/*')),
    'process' => getmypid(),
]);
