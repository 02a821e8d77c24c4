<?php
$s = $open();
echo $ask($s, 'echo a'), $ask($s, 'echo b');
$child = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
fclose($s);
$s = $open();
echo $ask($s, 'echo c'), $ask($s, 'echo d');
fwrite($pipes[0], $m);
fclose($pipes[0]);
echo stream_get_contents($pipes[1]);
proc_close($child);
