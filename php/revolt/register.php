<?php

/* Makes Howdah's driver the one of Revolt's event loop, in async mode only. */

declare(strict_types=1);

namespace Howdah\Revolt;

if (\function_exists('Howdah\mode') && \Howdah\mode() === 'async') {
    \Revolt\EventLoop::setDriver(new Driver());
}
