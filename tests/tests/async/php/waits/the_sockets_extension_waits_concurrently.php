<?php
socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $p);
$task = Howdah\go(fn () => socket_read($p[0], 100));
meet('a');
socket_write($p[1], $m);
echo Howdah\await($task);
$r = [$p[0]];
$w = $e = null;
Howdah\go(function () use ($p, $m) {
    meet('b');
    socket_write($p[1], $m);
});
socket_select($r, $w, $e, null);
echo socket_read($r[0], 100);
