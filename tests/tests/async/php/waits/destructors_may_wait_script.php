<?php
require_once __DIR__ . '/ends.php';
$a = new Ends($m);
meet('a');
unset($a);
meet('b');
for ($i = 0; $i < 3; $i++) {
    $c = new Ends($m);
    $c->self = $c;
    unset($c);
}
ob_start();
gc_collect_cycles();
ob_end_clean();
meet('c');
$at_end = new Ends($m);
$GLOBALS['global_end'] = new Ends($m);
(function () use ($m) {
    global $referred;
    $referred = new Ends($m);
})();
echo '.';
