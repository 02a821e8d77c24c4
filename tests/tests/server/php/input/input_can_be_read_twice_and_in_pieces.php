<?php
$f = fopen('php://input', 'r');
$a = '';
while (!feof($f)) {
    $a .= fread($f, 1000);
}
rewind($f);
$b = stream_get_contents($f, 10);
echo strlen($a), ' ', $b, ' ', strlen(file_get_contents('php://input'));
