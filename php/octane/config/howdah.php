<?php

return [
    // The program; null: `howdah` in the project, in vendor/bin, in PATH.
    'binary' => env('OCTANE_HOWDAH_BINARY'),

    // "worker": the application stays, and Octane resets it. "snapshot": whatever a request changes is undone as well.
    'mode' => env('OCTANE_HOWDAH_MODE', 'worker'),

    // Snapshot mode: what is asked for once before the snapshot is taken, so that what it loads is there.
    'warmup' => ['/'],

    // Processes for Octane::concurrently() and ticks: a number, "2-8", or "auto": "0-8", as many as there is work for; "0": none.
    'task_workers' => env('OCTANE_HOWDAH_TASK_WORKERS', 'auto'),

    // A howdah.toml with what Octane has no options for: certificates, rules, limits, logs. Null: none.
    'config' => env('OCTANE_HOWDAH_CONFIG'),

    // Where octane:reload, octane:status and octane:stop reach the server; null: a socket in storage/framework.
    'admin' => env('OCTANE_HOWDAH_ADMIN'),
];
