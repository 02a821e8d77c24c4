<?php
$loaded = basename(__DIR__);
while (frankenphp_handle_request(function () use ($loaded) {
    usleep(3000);
    echo $loaded, '|', require __DIR__.'/public/part.php', '|', file_get_contents($_SERVER['DOCUMENT_ROOT'].'/release.txt'), '|',
        basename(dirname($_SERVER['DOCUMENT_ROOT']));
}));
