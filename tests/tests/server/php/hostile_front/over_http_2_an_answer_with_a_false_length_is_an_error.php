<?php
header('Content-Length: ' . $_GET['n']);
echo '01234';
if (ob_get_level()) {
    ob_flush();
}
flush();
require 'gate.php';
gate('g');
echo '56789';
