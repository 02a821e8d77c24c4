<?php

// Writes the stubs and the reference of the async library (`make generate`).

declare(strict_types=1);

require __DIR__ . '/Api.php';
$api = new Howdah\Tools\Api(__DIR__ . '/../src');
file_put_contents(__DIR__ . '/../../stubs/async.stub.php', $api->stubs());
file_put_contents(__DIR__ . '/../../../docs/reference/async-api.md', $api->reference());
