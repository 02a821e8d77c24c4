<?php

/* Functions that wait for the end of their coroutine: defer(). A task runs them as its last act, so that their errors are
 * its own. Where that does not happen (after exit(), in coroutines that are no tasks) the coroutine's end does it. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;

final class Deferred
{
    /** @var list<\Closure> */
    private array $functions = [];

    /** Adds a function to those of the running coroutine. */
    public static function add(\Closure $function): void
    {
        $coroutine = WaitQueue::coroutine();
        $deferred = $coroutine->data['deferred'] ?? null;
        if ($deferred === null) {
            $deferred = $coroutine->data['deferred'] = new self();
            $coroutine->atEnd($deferred->runLate(...));
        }
        $deferred->functions[] = $function;
    }

    /**
     * Runs the functions, the last one first, those included that are added meanwhile. They may wait although the coroutine
     * is cancelled.
     *
     * @return \Throwable|null $error, or the first one of a function if there was none before
     */
    public function run(?\Throwable $error = null): ?\Throwable
    {
        Coroutine::shield(true);
        try {
            while (($function = array_pop($this->functions)) !== null) {
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

    private function runLate(): void
    {
        $error = $this->run();
        if ($error !== null) {
            throw $error;
        }
    }
}
