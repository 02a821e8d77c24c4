<?php
$data = [];
for ($i = 0; $i < 500; $i++) {
    $data[] = str_repeat('x', 3500 + $i);
}
$handle = function () use (&$data) {
    $found = 0;
    for ($i = isset($_GET['write']) ? 0 : 500; $i < 500; $i++) {
        $found += $data[$i][9] !== 'x';
        $data[$i][9] = 'y';
    }
    echo $found;
};
