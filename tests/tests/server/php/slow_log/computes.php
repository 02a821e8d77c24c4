<?php
if (!function_exists('slow_log_outer')) {
    function slow_log_outer(string $stop): string
    {
        while (!slow_log_computes($stop)) {
        }
        return 'computed';
    }

    function slow_log_computes(string $stop): bool
    {
        $sum = 0;
        for ($i = 0; $i < 400000; $i++) {
            $sum = ($sum * 31 + $i) % 1000003;
        }
        clearstatcache();
        return file_exists($stop);
    }
}
echo slow_log_outer(__DIR__ . '/stop');
