<?php
meet('a');
foreach (['sleep', 'usleep'] as $f) {
    try {
        $f(-1);
        echo 'slept';
    } catch (ValueError $e) {
        echo 'V';
    }
}
try {
    time_nanosleep(0, 2000000000);
    echo 'slept';
} catch (ValueError $e) {
    echo 'V';
}
echo var_export(@time_sleep_until(1), true), $m;
