<?php
// Keeps 2 MiB of each request, and reports the outcome of a request that runs out of memory.
$kept = [];
$handle = function () use (&$kept) {
    $kept[] = str_repeat('x', 2 << 20);
    echo getmypid();
};
