<?php
$functions = ['pcntl_setns', 'pcntl_setcpuaffinity'];
if (in_array($_GET['what'], $functions, true) && !function_exists($_GET['what'])) {
    echo 'missing';
    return;
}
$fork = function (int $signal): int {
    if (($child = pcntl_fork()) === 0) {
        while (true) {
            posix_kill(posix_getpid(), $signal);
        }
    }
    return $child;
};
echo json_encode(match ($_GET['what']) {
    'proc_nice' => proc_nice(3),
    'pcntl_setpriority' => pcntl_setpriority(4),
    'posix_setrlimit' => posix_setrlimit(POSIX_RLIMIT_CORE, 0, 0),
    'posix_setsid' => posix_setsid() !== -1,
    'posix_setpgid' => posix_setpgid(0, 0),
    'posix_setuid' => posix_setuid(posix_geteuid()),
    'posix_setgid' => posix_setgid(posix_getegid()),
    'posix_seteuid' => posix_seteuid(posix_geteuid()),
    'posix_setegid' => posix_setegid(posix_getegid()),
    'posix_initgroups' => posix_initgroups('nobody', 12345),
    'pcntl_unshare' => pcntl_unshare(CLONE_NEWUTS),
    'pcntl_signal' => pcntl_signal(SIGUSR1, fn () => null) && pcntl_signal(SIGPIPE, SIG_DFL),
    'pcntl_sigprocmask' => pcntl_sigprocmask(SIG_BLOCK, [SIGUSR2]),
    'pcntl_alarm' => pcntl_alarm(600) === 0,
    'pcntl_setns' => pcntl_setns(getmypid(), CLONE_NEWUTS),
    'pcntl_setcpuaffinity' => pcntl_setcpuaffinity(getmypid(), [0]),
    'wait' => ($child = $fork(SIGKILL)) === pcntl_waitpid($child, $status),
    'umask' => umask(0777) !== null,
});
