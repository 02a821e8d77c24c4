<?php
require 'gate.php';
header('X-Accel-Buffering: no');
echo 'first';
flush();
gate('one');
echo 'second';
flush();
gate('two');
echo 'third';
