<?php
$count = function () use ($m) {
    for ($i = 0; $i < 3; $i++) {
        pause();
        $got = yield $i => $m;
        if ($got) {
            echo $got;
        }
    }
    return 'r';
};
$g = $count();
foreach ($g as $k => $v) {
    usleep(200);
    echo $k, $v;
}
echo $g->getReturn(), ' ';
meet('a');
$outer = (function () use ($count) {
    $r = yield from $count();
    yield 9 => $r;
})();
foreach ($outer as $k => $v) {
    pause();
    echo $k, $v;
}
meet('b');
$fiber = new Fiber(function ($x) use ($m) {
    usleep(500);
    $y = Fiber::suspend($x . $m);
    meet('in a fiber');
    $z = Fiber::suspend($y);
    pause();
    return $z;
});
echo ' ', $fiber->start('f'), $fiber->resume('y'), ' ';
$fiber->resume('z');
echo $fiber->getReturn(), $fiber->isTerminated() ? 1 : 0;
$bad = new Fiber(function () use ($m) {
    pause();
    throw new Exception($m);
});
try {
    $bad->start();
} catch (Exception $e) {
    echo ' ', $e->getMessage();
}
