<?php
/* A file in which a function is called after every third statement, with other requests in between. */
declare(ticks=3);

$ticked = 0;
$tick = static function (string $owner) use (&$ticked): void {
    $_GET['m'] === $owner || print "[a tick of $owner]";
    $ticked++;
};
register_tick_function($tick, $mark);
$sum = 1;
pause();
$sum += 2;
pause();
$sum += 3;
$sum += 4;
pause();
$sum += 5;
unregister_tick_function($tick);

return "$sum $mark $ticked";
