<?php
// As Debian's: one WordPress for several hosts, each with a configuration of its own.
$host = preg_replace('/:.*/', '', $_SERVER['HTTP_HOST']);
require __DIR__ . "/config-$host.php";
