<?php
return function ($is) {
    $again = function () use (&$again) {
        try {
            Howdah\delay(0.001);
        } catch (Howdah\CancelledException) {}
        Howdah\detach($again);
        mark('turn');
    };
    Howdah\detach($again);
    $is('started', true, true);
};
