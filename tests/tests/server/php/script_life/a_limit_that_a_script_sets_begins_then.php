<?php
$used = static function (): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
};
$spin = static function (float $seconds) use ($used): void {
    $began = $used();
    while ($used() - $began < $seconds);
};
ini_set('max_execution_time', '1');
$spin(0.5);
set_time_limit(isset($_GET['more']) ? 20 : 1);
$spin(isset($_GET['more']) ? 0.8 : 0.5);
echo 'done';
