<?php
$s = $open();
$other = $open();
echo $ask($s, 'echo a'), $ask($s, 'echo b');
foreach ([1, 2, 3] as $turn) {
    echo $ask($s, "subscribe $m$turn");
    $reader = Howdah\go(fn () => rtrim(fgets($s)));
    meet("in$turn");
    echo $ask($other, "push $m$turn"), Howdah\await($reader), ' ';
}
echo $m;
