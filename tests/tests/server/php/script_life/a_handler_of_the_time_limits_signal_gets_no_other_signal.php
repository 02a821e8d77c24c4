<?php
ini_set('max_execution_time', '1');
$used = static function (): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
};
$signals = 0;
pcntl_async_signals(true);
pcntl_signal(SIGPROF, static function () use (&$signals): void {
    $signals++;
});
$began = $used();
while ($signals === 0 && $used() - $began < 8);
echo $used() - $began;
