<?php
$list = range(1, 9);
shuffle($list);
usort($list, function ($a, $b) {
    usleep(random_int(1, 300));
    return $a <=> $b;
});
echo implode($list);
meet('a');
$marks = ['b' => $m, 'a' => $m];
uksort($marks, function ($a, $b) {
    pause();
    return strcmp($a, $b);
});
array_walk($marks, function (&$v, $k) {
    pause();
    $v = "$k$v";
});
echo ' ', implode($marks);
meet('b');
echo ' ', preg_replace_callback('/[0-9]+/', function ($d) {
    pause();
    return preg_replace_callback('/[0-9]/', function ($x) {
        pause();
        return $x[0];
    }, $d[0]);
}, $m);
meet('c');
echo ' ', implode(array_map(function ($x) use ($m) {
    pause();
    return $x;
}, [$m, 2])), array_reduce([1, 2], function ($c, $x) {
    pause();
    return $c + $x;
}), implode(array_filter([0, 1, 2], function ($x) {
    pause();
    return $x;
}));
$list = [3, 1, 2];
meet('d');
foreach ($list as &$item) {
    pause();
    $item *= 2;
}
unset($item);
echo ' ', implode(',', $list);
