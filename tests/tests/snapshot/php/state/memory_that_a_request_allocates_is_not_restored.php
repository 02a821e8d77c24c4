<?php
$kept = [];
for ($i = 0; $i < 20000; $i++) {
    $kept[] = str_repeat('x', 16 + $i % 2500);
}
for ($i = 0; $i < 20000; $i += 2) {
    $kept[$i] = null;
}
$handle = function () {
    $own = [];
    for ($i = 0; $i < (int) ($_GET['n'] ?? 0); $i++) {
        $own[] = str_repeat('y', 16 + $i % 2500);
    }
    echo count($own);
};
