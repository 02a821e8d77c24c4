<?php
require 'gate.php';
header('X-Accel-Buffering: no');
echo 'a';
flush();
gate('g' . $_GET['n']);
echo 'b';
