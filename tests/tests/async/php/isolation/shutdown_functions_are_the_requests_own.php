<?php
register_shutdown_function(function () use ($m) {
    usleep(500);
    echo "<1 $m>";
    register_shutdown_function(function () use ($m) {
        pause();
        echo "<3 $m>";
    });
});
meet('a');
register_shutdown_function(function (...$a) {
    meet('in shutdown');
    echo '<2 ', $a[0], '>';
}, $m);
echo 'body ';
