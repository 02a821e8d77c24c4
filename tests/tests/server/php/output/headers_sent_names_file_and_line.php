<?php
echo 'x';
flush();
$w = headers_sent($f, $l);
header('X-Late: 1');
echo json_encode([$w, basename($f), $l]);
