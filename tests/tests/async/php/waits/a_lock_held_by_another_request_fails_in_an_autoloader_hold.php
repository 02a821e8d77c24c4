<?php
require_once 'gate.php';
$f = fopen(dirname(__DIR__) . '/marks/lock', 'c+');
flock($f, LOCK_EX);
gate('g');
echo 'held';
