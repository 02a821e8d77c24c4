<?php
$p = $r->multi(Redis::PIPELINE);
for ($i = 0; $i < 50; $i++) {
    $p->set("$m.$i", "$m-$i");
    $p->get("$m.$i");
}
meet('a');
$all = $p->exec();
echo count($all), $all[99] === "$m-49" ? 'ok' : 'torn';
$t = $r->multi();
$t->incr("n$m");
pause();
$t->incr("n$m");
meet('b');
echo implode($t->exec());
$seen = '';
$sub = Howdah\go(function () use ($m, $port, &$seen) {
    $s = new Redis;
    $s->connect('127.0.0.1', $port);
    $s->setOption(Redis::OPT_READ_TIMEOUT, 50);
    $s->subscribe(["ch$m"], function ($r, $ch, $text) use (&$seen) {
        pause();
        $seen .= $text;
        if ($text === 'end') {
            $r->close();
        }
    });
});
meet('c');
while (($r->pubsub('numsub', ["ch$m"])["ch$m"] ?? 0) < 1) {
    usleep(1000);
}
$r->publish("ch$m", $m);
$r->publish("ch$m", 'end');
try {
    Howdah\await($sub, 50);
} catch (RedisException $e) {}
echo $seen;
