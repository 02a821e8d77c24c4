<?php
require 'gate.php';
session_start();
$_SESSION['a'] = 'b';
session_write_close();
gate('g');
echo 'held';
