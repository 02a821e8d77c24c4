<?php
meet('a');
exec("sleep 0.05; echo $m; exit 3", $lines, $status);
echo implode($lines), $status, ' ', trim(shell_exec("echo sh $m")), ' ';
ob_start();
system("echo sys $m", $status);
passthru('printf raw; exit 4', $second);
echo trim(ob_get_clean()), "$status$second ";
$p = popen("cat > /dev/null; exit 5", 'w');
fwrite($p, $m);
echo pclose($p), ' ';
$p = popen("echo $m", 'r');
echo trim(fgets($p)), pclose($p);
