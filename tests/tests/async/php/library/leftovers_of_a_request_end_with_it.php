<?php
return function ($is) {
    static $pool;
    $pool ??= new Howdah\Pool(fn () => new stdClass, max: 1);
    Howdah\defer(fn () => mark('deferred'));
    Howdah\go(function () {
        Howdah\delay(0.01);
        echo ' ';
    });
    // Never returned explicitly: the next request would wait for it.
    $is('connection', $pool->mine(20.0) === $pool->mine(), true);
    Howdah\after_response(fn () => mark('after'));
};
