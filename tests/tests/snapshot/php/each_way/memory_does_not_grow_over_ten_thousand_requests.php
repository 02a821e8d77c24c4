<?php
switch ($_GET['k'] ?? 0) {
    case 1: $GLOBALS['f'] = fopen('/dev/null', 'r');
    Holder::$list = range(1, 5000);
    break;
    case 2: $GLOBALS['b'] = str_repeat('x', 20 << 20);
    break;
    case 3: $GLOBALS['h'] = hash_init('sha256');
    eval('class L {}');
    preg_match('/a+b/u', 'aab');
    break;
}
echo Holder::$n++, count(Holder::$list);
