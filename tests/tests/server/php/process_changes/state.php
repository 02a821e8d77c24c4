<?php
$status = [];
foreach (file('/proc/self/status') as $line) {
    [$name, $value] = explode(':', $line, 2);
    $status[$name] = trim($value);
}
echo json_encode([
    getmypid(),
    [
        function_exists('chroot'), pcntl_getpriority(), posix_getrlimit()['soft core'], posix_getrlimit()['hard core'],
        posix_getsid(0) === getmypid(), posix_getpgid(0) === getmypid(),
        $status['Uid'], $status['Gid'], $status['Groups'], $status['SigBlk'], $status['SigIgn'],
        hexdec($status['SigCgt']) >> SIGUSR1 - 1 & 1, $status['Umask'],
        readlink('/proc/self/ns/uts'), $status['Cpus_allowed_list'], pcntl_waitpid(-1, $child, WNOHANG),
    ],
]);
