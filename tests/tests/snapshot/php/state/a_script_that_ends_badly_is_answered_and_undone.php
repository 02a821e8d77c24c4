<?php
$n = 0;
$handle = function () use (&$n) {
    $n++;
    switch ($_GET['do'] ?? '') {
        case 'exit': exit('bye');
        case 'throw': throw new Exception('thrown here');
        case 'call': no_such_function();
        case 'memory': $x = str_repeat('x', 1 << 30);
        case 'time': set_time_limit(1);
        while (true) {}
    }
    echo $n, ' ', getmypid();
};
