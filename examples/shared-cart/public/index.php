<?php
// Serves one request in classic mode and with PHP-FPM, and many with one shop in the other modes.

declare(strict_types=1);

require_once __DIR__ . '/../shop.php';

$shop = new Shop();
if (!function_exists('Howdah\mode') || Howdah\mode() === 'classic') {
    $shop->respond();

    return;
}
while (frankenphp_handle_request($shop->respond(...))) {
}
