<?php
global $n;
$n++;
$d = new D;
echo "n=$n";
register_shutdown_function(function () {
    echo ' shutdown';
});
switch ($_GET['end'] ?? '') {
    case 'exit': exit(' exit');
    case 'throw': throw new RuntimeException('thrown');
    case 'fatal': no_such_function();
    case 'memory': $a = [];
    while (true) {
        $a[] = str_repeat('m', 1 << 20);
    }
    case 'time': set_time_limit(1);
    while (true) {
        $x = 1;
    }
    case 'compile': eval('class X { function f() {} function f() {} }');
}
