<?php
return function ($is) {
    static $pool;
    $pool ??= new Howdah\Pool(fn () => new stdClass, max: 1);
    $throws = new class {
        public bool $armed = false;
        function __destruct() {
            if ($this->armed) {
                throw new Exception('thrown at the very end');
            }
        }
    };
    $task = Howdah\go(function () use ($pool, $throws) {
        $pool->get();
        $throws->armed = true;
    });
    unset($throws);
    $task->await();
    Howdah\delay(0.01);
    $is('lent', $pool->stats()['in_use'], 0);
    $is('done', $task->coroutine()->isDone(), true);
};
