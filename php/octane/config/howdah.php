<?php

return [
    // The program; null: `howdah` in the project, in vendor/bin, in PATH.
    'binary' => env('OCTANE_HOWDAH_BINARY'),

    // "worker": the application stays, and Octane resets it. "snapshot": whatever a request changes is undone as well.
    'mode' => env('OCTANE_HOWDAH_MODE', 'worker'),

    // Snapshot mode: what is asked for once before the snapshot is taken, so that what it loads is there.
    'warmup' => ['/'],

    // A howdah.toml with what Octane has no options for: certificates, rules, limits, logs. Null: none.
    'config' => env('OCTANE_HOWDAH_CONFIG'),

    // Where octane:reload, octane:status and octane:stop reach the server; null: a socket in storage/framework.
    'admin' => env('OCTANE_HOWDAH_ADMIN'),
];
