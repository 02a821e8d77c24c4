<?php
for ($turn = 0; $turn < 5; $turn++) {
    $s = $open();
    echo $ask($s, 'echo a'), $ask($s, 'echo b');
    fclose($s);
    $p = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    foreach ([0, 1] as $side) {
        $reader = Howdah\go(fn () => rtrim(fgets($p[$side])));
        meet("$turn$side");
        fwrite($p[1 - $side], "$side\n");
        echo Howdah\await($reader);
    }
}
echo $m;
