<?php
$GLOBALS['table'] = []; // an array that is modified in place, not a copy of a constant
for ($i = 0; $i < 20000; $i++) {
    $GLOBALS['table'][] = $i;
}
$handle = function () {
    $changed = 0;
    for ($i = 0; $i < 20000; $i++) {
        $changed += (int) ($GLOBALS['table'][$i] !== $i);
    }
    $GLOBALS['table'][(int) ($_GET['n'] ?? 0) * 7919 % 20000] ^= 1;
    echo $changed;
};
