<?php

/* Functions that run at the end of their coroutine: defer(). A task runs them last, so that their errors become its own.
 * Otherwise (after exit(), in coroutines that are not tasks) they run when the coroutine ends. */

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
     * Runs the functions, the last one first, including those that are added meanwhile. They may wait even if the coroutine
     * is cancelled.
     *
     * @return \Throwable|null $error, or the first error of a function if $error is null
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
