<?php

return [
    // Path of the program; null: look for `howdah` in the project, in vendor/bin, in PATH.
    'binary' => env('OCTANE_HOWDAH_BINARY'),

    // "worker": the application stays, and Octane resets it. "snapshot": all changes of a request are undone as well.
    'mode' => env('OCTANE_HOWDAH_MODE', 'worker'),

    // Snapshot mode: paths that are requested once before the snapshot is taken, so that it contains what they load. Frequent
    // routes are added, unless a howdah.toml of the project lacks `warmup_auto = true`.
    'warmup' => ['/'],

    // Processes for Octane::concurrently() and ticks: a number, "2-8", or "auto": "0-8", depending on the load; "0": none.
    'task_workers' => env('OCTANE_HOWDAH_TASK_WORKERS', 'auto'),

    // A howdah.toml with settings that Octane has no options for: certificates, rules, limits, logs. Null: none.
    'config' => env('OCTANE_HOWDAH_CONFIG'),

    // Address at which octane:reload, octane:status and octane:stop reach the server; null: a socket in storage/framework.
    'admin' => env('OCTANE_HOWDAH_ADMIN'),
];
