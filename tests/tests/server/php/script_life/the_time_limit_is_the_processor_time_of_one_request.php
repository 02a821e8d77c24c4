<?php
$used = static function (): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
};
$began = $used();
$done = false;
register_shutdown_function(static function () use ($used, $began, &$done): void {
    if (!$done) {
        echo $used() - $began;
    }
});
set_time_limit(1);
while ($used() - $began < (float) $_GET['seconds']);
$done = true;
echo 'done';
