<?php

// The stubs and the reference match the library: `make generate` writes them.

declare(strict_types=1);

require __DIR__ . '/../tools/Api.php';
$api = new Howdah\Tools\Api(__DIR__ . '/../src');
$status = 0;
foreach (['php/stubs/async.stub.php' => $api->stubs(), 'docs/reference/async-api.md' => $api->reference()] as $file => $fresh) {
    if (file_get_contents(__DIR__ . "/../../../$file") !== $fresh) {
        fwrite(STDERR, "$file is out of date: run `make generate`\n");
        $status = 1;
    }
}
exit($status);
