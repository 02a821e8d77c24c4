<?php
set_error_handler(function ($no, $text) use ($m) {
    usleep(random_int(1, 2000));
    echo "{handled by $m: $text}";
    return true;
});
set_exception_handler(function ($e) use ($m) {
    usleep(500);
    echo '<', $e->getMessage(), ' ', $m, '>';
});
meet('a');
trigger_error("first $m", E_USER_WARNING);
meet('b');
trigger_error("second $m", E_USER_NOTICE);
restore_error_handler();
set_error_handler(function ($no, $text) use ($m) {
    pause();
    echo "(new $m: $text)";
    return true;
});
meet('c');
trigger_error('third');
meet('d');
throw new Exception("thrown in $m");
