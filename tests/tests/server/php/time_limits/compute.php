<?php
set_time_limit(0);
register_shutdown_function(function () {
    while (true) {
    }
});
while (true) {
    try {
        for ($i = 0; $i < 1_000_000; $i++) {
            hash('sha256', (string) $i);
        }
        throw new Exception('caught');
    } catch (Throwable $e) {
    }
}
