<?php
$loaded = [];
$handle = function () use (&$loaded) {
    $loaded[] = $_SERVER['REQUEST_URI'];
    echo json_encode($loaded, JSON_UNESCAPED_SLASHES);
};
