<?php
$pairs = array_map(fn () => stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0), ['x' => 0, 'y' => 0, 'z' => 0]);
Howdah\go(function () use ($pairs, $m) {
    meet('all select');
    pause();
    fwrite($pairs['y'][1], "$m\n");
});
$r = array_map(fn ($p) => $p[0], $pairs);
$w = $e = null;
$n = stream_select($r, $w, $e, null);
echo $n, implode(',', array_keys($r)), trim(fgets($pairs['y'][0]));
$r = [$pairs['x'][0]];
$w = [$pairs['z'][0]];
$e = [];
echo ' ', stream_select($r, $w, $e, 50), count($r), count($w);
$r = [$pairs['x'][0]];
$w = null;
echo ' ', stream_select($r, $w, $e, 0, 20000), count($r);
meet('b');
fwrite($pairs['x'][1], "1\n2\n");
fgets($pairs['x'][0]);
$r = [$pairs['x'][0]];
$w = null;
echo ' ', stream_select($r, $w, $e, null), trim(fgets($pairs['x'][0]));
