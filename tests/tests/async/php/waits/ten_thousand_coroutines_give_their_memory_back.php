<?php
$rss = fn () => (int) preg_replace('/.*VmRSS:\s*([0-9]+).*/s', '$1', file_get_contents('/proc/self/status'));
$n = (int) $_GET['n'];
$tasks = [];
for ($i = 0; $i < $n; $i++) {
    $tasks[] = Howdah\go(function () use ($i) {
        usleep(100000);
        return $i;
    });
}
$sum = array_sum(array_map(fn ($t) => Howdah\await($t), $tasks));
unset($tasks);
echo $sum === $n * ($n - 1) / 2 ? $m : 'wrong', ' ', $rss(), ' ', memory_get_usage();
