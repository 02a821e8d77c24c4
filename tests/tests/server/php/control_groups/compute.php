<?php
$begun = hrtime(true);
$before = getrusage();
do {
    for ($i = 0, $sum = 0; $i < 100_000; $i++) {
        $sum += $i;
    }
} while (hrtime(true) - $begun < 2_000_000_000);
$after = getrusage();
$used = static fn(array $usage) => $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
    + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
echo ($used($after) - $used($before)) / ((hrtime(true) - $begun) / 1e9);
