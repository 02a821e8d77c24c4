<?php

/* Functions, constants and short class names of Swoole. Composer's autoloader finds the classes; it is called only for
 * classes that no extension defines. */

declare(strict_types=1);

namespace {
    if (!extension_loaded('swoole') && !extension_loaded('openswoole')) {
        require_once __DIR__ . '/support/names.php';
    }
}
