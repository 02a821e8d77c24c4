<?php
return function ($is) {
    $fails = new class {
        public bool $armed = false;
        function __destruct() {
            if ($this->armed) {
                trigger_error('failed at the very end', E_USER_ERROR);
            }
        }
    };
    $coroutine = Howdah\Coroutine::start(function () use ($fails) {
        $fails->armed = true;
    });
    unset($fails);
    $is('joined', $coroutine->join(20.0), true);
    $next = Howdah\Coroutine::start(fn () => Howdah\delay(0.01));
    $is('done', $coroutine->isDone(), true);
    $is('next', $next->isDone(), false);
};
