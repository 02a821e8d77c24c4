<?php
$s = $open();
foreach ([8191, 8192, 8193, 16384, 100000, 3] as $n) {
    $text = $ask($s, "big $n");
    echo strlen($text) + 1, ' ';
}
echo $ask($s, "echo $m");
