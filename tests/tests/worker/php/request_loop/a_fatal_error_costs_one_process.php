<?php
$handle = function () {
    if (isset($_GET['oom'])) {
        $a = [];
        while (true) {
            $a[] = str_repeat('x', 100000);
        }
    }
    echo getmypid(), ' ', ini_get('memory_limit');
};
