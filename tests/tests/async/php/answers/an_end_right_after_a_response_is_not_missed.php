<?php
foreach ([1, 2, 3] as $turn) {
    $s = $open();
    echo $ask($s, 'echo a'), $ask($s, 'bye');
    echo var_export(fgets($s), true), feof($s) ? 'end' : 'open', ' ';
    fclose($s);
}
echo $m;
