<?php

/* Functions that wait for the end of their coroutine: defer(). They lie in Coroutine::$data. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;

final class Deferred
{
    /**
     * Runs the deferred functions of a coroutine, the last one first, those included that are added meanwhile. They may
     * wait although the coroutine is cancelled.
     *
     * @return \Throwable|null $error, or the first one of a deferred function if there was none before
     */
    public static function run(Coroutine $coroutine, ?\Throwable $error = null): ?\Throwable
    {
        Coroutine::shield(true);
        try {
            while (($coroutine->data['deferred'] ?? []) !== []) {
                $function = array_pop($coroutine->data['deferred']);
                try {
                    $function();
                } catch (\Throwable $thrown) {
                    if ($error === null) {
                        $error = $thrown;
                    } else {
                        Report::uncaught($thrown, 'in a deferred function');
                    }
                }
            }
        } finally {
            Coroutine::shield(false);
        }

        return $error;
    }
}
