<?php
random_bytes(8);
$pid = pcntl_fork();
if ($pid === 0) {
    file_put_contents('child', bin2hex(random_bytes(16)));
    posix_kill(getmypid(), SIGKILL);
}
$own = bin2hex(random_bytes(16));
pcntl_waitpid($pid, $status);
echo $own, ' ', file_get_contents('child');
