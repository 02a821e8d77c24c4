<?php
require 'gate.php';
header('Content-Type: application/x');
header('Content-Length: 3000000');
header('X-Accel-Buffering: no');
echo str_repeat('a', 1000000);
flush();
gate('g');
echo str_repeat('b', 2000000);
