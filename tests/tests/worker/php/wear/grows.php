<?php
// Keeps 2 MiB of each request, and says what becomes of a request that finds no room.
$kept = [];
$handle = function () use (&$kept) {
    $kept[] = str_repeat('x', 2 << 20);
    echo getmypid();
};
