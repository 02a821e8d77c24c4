<?php
$texts = [json_encode(getenv()), json_encode($_ENV), json_encode($_SERVER)];
foreach (['self', posix_getppid()] as $process) {
    $texts[] = str_replace("\0", "\n", (string) @file_get_contents("/proc/$process/environ"));
}
echo implode("\n", $texts);
