<?php

/* Functions, constants and short class names of Swoole. Classes are found by Composer's autoloader, which is asked only
 * for what no extension defines. */

declare(strict_types=1);

namespace {
    if (!extension_loaded('swoole') && !extension_loaded('openswoole')) {
        require_once __DIR__ . '/support/names.php';
    }
}
