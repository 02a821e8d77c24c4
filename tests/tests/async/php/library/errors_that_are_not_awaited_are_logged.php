<?php
return function ($is) {
    Howdah\go(fn () => throw new Exception('lost in a task'));
    Howdah\Timer::after(1, fn () => throw new Exception('lost in a timer'));
    Howdah\delay(0.01);
    $is('', 1, 1);
};
