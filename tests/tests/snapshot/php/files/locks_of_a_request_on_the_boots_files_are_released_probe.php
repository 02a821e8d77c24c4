<?php
$other = fopen(__DIR__ . '/../locked', 'c+');
echo flock($other, LOCK_EX | LOCK_NB) ? 'free' : 'locked', ftell($file), fgets($file);
