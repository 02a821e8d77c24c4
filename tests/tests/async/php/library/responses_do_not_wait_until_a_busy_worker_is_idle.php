<?php
return function ($is) {
    static $busy;
    $busy ??= Howdah\detach(function () {
        while (true) {
            Howdah\suspend();
        }
    });
    $is('busy', $busy->isDone(), false);
};
