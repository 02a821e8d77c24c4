<?php
$kept = [];
$handle = function () use (&$kept) {
    if (isset($_GET['leak'])) {
        $kept[] = str_repeat('x', 60 << 20);
    }
    echo getmypid();
};
