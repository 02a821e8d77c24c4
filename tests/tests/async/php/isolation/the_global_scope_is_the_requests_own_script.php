<?php
require_once __DIR__ . '/global.php';
set_it($m);
meet('a');
echo get_it();
meet('b');
$GLOBALS['later'] = 1;
$GLOBALS['marked'] .= '!';
meet('c');
echo get_it() === $m . '!' . $m . 'foreign' ? ' same' : ' other';
