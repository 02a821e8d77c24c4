<?php
$texts = array_map(fn ($all) => json_encode($all, JSON_INVALID_UTF8_SUBSTITUTE), [getenv(), $_ENV, $_SERVER]);
foreach (['self', posix_getppid()] as $process) {
    $texts[] = str_replace("\0", "\n", (string) @file_get_contents("/proc/$process/environ"));
}
echo implode("\n", $texts);
