<?php

/* Sets Howdah's driver for Revolt's event loop, in async mode only. */

declare(strict_types=1);

namespace Howdah\Revolt;

use Revolt\EventLoop;

if (\function_exists('Howdah\mode') && \Howdah\mode() === 'async') {
    if (!class_exists(EventLoop\FiberLocal::class, false)) {
        require __DIR__ . '/FiberLocal.php';
    }
    EventLoop::setDriver(new Driver());
}
