<?php
$c = FFI::cdef('long ptrace(int, int, void *, void *); int kill(int, int); long syscall(long, ...);');
$seen = [];
foreach ([__LIST__] as $pid) if ($pid !== getmypid()) {
    foreach (['environ', 'maps', 'mem', 'auxv', 'root/etc/hostname', 'cwd/howdah.toml', 'fd/2'] as $f) if (@fopen("/proc/$pid/$f", 'r')) $seen[] = "$pid $f";
    if (posix_kill($pid, 0)) $seen[] = "$pid posix_kill";
    if ($c->kill($pid, 0) === 0) $seen[] = "$pid kill";
    if ($c->ptrace(16, $pid, null, null) === 0) $seen[] = "$pid ptrace";
    $fd = $c->syscall(434, $pid, 0);
    if ($fd >= 0 && $c->syscall(424, $fd, 0, 0, 0) === 0) $seen[] = "$pid pidfd_send_signal";
    if ($fd >= 0 && $c->syscall(438, $fd, 0, 0) >= 0) $seen[] = "$pid pidfd_getfd";
}
$seen[] = posix_kill(getmypid(), 0) ? 'itself' : 'not even itself';
echo json_encode($seen);
