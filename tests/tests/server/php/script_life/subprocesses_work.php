<?php
echo trim(shell_exec('echo shell'));
exec('exit 3', $o, $c);
echo $c;
$p = proc_open(['cat'], [['pipe','r'],['pipe','w']], $pipes);
fwrite($pipes[0], 'through');
fclose($pipes[0]);
echo stream_get_contents($pipes[1]);
echo proc_close($p);
