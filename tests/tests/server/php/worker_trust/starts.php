<?php
$note = fn (string $name, int $pid) => file_put_contents(dirname(__DIR__) . "/marks/$name", $pid);
exec('sleep 1000 >/dev/null 2>&1 & echo $!', $out);
$note('exec', (int) $out[0]);
exec('setsid sh -c "sleep 1000 & sleep 1000" >/dev/null 2>&1 & echo $!', $out);
$note('setsid', (int) $out[1]);
pclose(popen('sleep 1000 >/dev/null 2>&1 &', 'r'));
$null = ['file', '/dev/null', 'r+'];
$GLOBALS['kept'] = proc_open('sleep 1000 & echo $!', [$null, ['pipe', 'w'], $null], $pipes);
$note('proc_open', (int) fgets($pipes[1]));
proc_close($GLOBALS['kept']);
echo 'started';
