<?php
// As Debian's: one WordPress for several hosts, each with its own configuration.
$host = preg_replace('/:.*/', '', $_SERVER['HTTP_HOST']);
require __DIR__ . "/config-$host.php";
