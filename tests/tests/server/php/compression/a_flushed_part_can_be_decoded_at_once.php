<?php
require 'gate.php';
header('Content-Type: text/html');
echo str_repeat('first ', 1000);
flush();
gate('g');
echo str_repeat('second ', 1000);
