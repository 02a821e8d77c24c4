<?php

/** Runs before every script of a server that `howdah doctor` starts with the probe. */

if (!class_exists('Howdah\Doctor\Probe', false)) {
    require __DIR__ . '/probe.php';
    Howdah\Doctor\Probe::install(__DIR__ . '/../report/report.jsonl');
    // The server's function is disabled; `Howdah\handle_request()` is the same.
    if (!function_exists('frankenphp_handle_request')) {
        function frankenphp_handle_request(callable $callback): bool
        {
            return Howdah\Doctor\Probe::turn($callback);
        }
    }
}
if (isset($_SERVER['HTTP_X_HOWDAH_DOCTOR']) && !Howdah\Doctor\Probe::begin(null)) {
    exit;
}
