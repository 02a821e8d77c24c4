<?php
$p = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
$data = str_repeat($m, 60000);
meet('a');
$writer = Howdah\go(function () use ($pipes, $data) {
    fwrite($pipes[0], $data);
    fclose($pipes[0]);
});
$back = stream_get_contents($pipes[1]);
Howdah\await($writer);
$closer = Howdah\go(fn () => proc_close($p));
echo $back === $data ? 'same' : strlen($back), Howdah\await($closer), $m;
