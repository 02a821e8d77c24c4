<?php
if (!function_exists('slow_log_outer')) {
    function slow_log_outer(string $stop): string
    {
        for (;;) {
            slow_log_computes();
            clearstatcache();
            if (file_exists($stop)) {
                return 'computed';
            }
        }
    }

    function slow_log_computes(): int
    {
        $sum = 0;
        for ($i = 0; $i < 400000; $i++) {
            $sum = ($sum * 31 + $i) % 1000003;
        }
        return $sum;
    }
}
echo slow_log_outer(__DIR__ . '/stop');
