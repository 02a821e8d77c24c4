<?php
$n = (int) substr($m, 4);
$next = 'mark' . (($n + 1) % __CROWD__) . 'end';
$t = Howdah\go(fn () => $r->blPop(["list$m"], 50));
meet('a');
$other = new Redis;
$other->connect('127.0.0.1', $port);
pause();
$other->rPush("list$next", "to $n");
[$list, $got] = Howdah\await($t);
echo $list === "list$m" && $got === 'to ' . (($n + __CROWD__ - 1) % __CROWD__) ? $m : "$list $got";
