<?php
/* A file with ticks. The functions called at them wait, which blocks the process. */
declare(ticks=1);

$ticked = 0;
$tick = static function (string $owner) use (&$ticked): void {
    usleep(WAITS ? random_int(0, 200) : 0);
    $_GET['m'] === $owner || print "[a tick of $owner]";
    $ticked++;
};
register_tick_function($tick, $mark);
$sum = 1;
pause();
$sum += 2;
unregister_tick_function($tick);

return "$sum $mark " . ($ticked > 0 ? 'ticked' : 'not ticked');
