<?php
function attack_calls(): FFI {
    static $c;
    return $c ??= FFI::cdef('long syscall(long number, ...); int *__errno_location(void);
        int getpriority(int which, int who);
        int setpriority(int which, int who, int value);
        long ptrace(long request, int pid, void *address, void *data);
        struct span { void *base; unsigned long length; };
        long process_vm_readv(int pid, struct span *to, unsigned long n, struct span *from, unsigned long m, unsigned long flags);
        long process_vm_writev(int pid, struct span *from, unsigned long n, struct span *to, unsigned long m, unsigned long flags);');
}
function attack_result(int $returned): string {
    return $returned >= 0 ? 'done' : posix_strerror(attack_calls()->__errno_location()[0]);
}
function attack(int $pid): array {
    $c = attack_calls();
    $said = fn () => preg_replace('~.*: ~', '', error_get_last()['message'] ?? 'no reason');
    $read = function (string $file, string $mode = 'rb') use ($pid, $said) {
        $opened = @fopen("/proc/$pid/$file", $mode);
        return $opened ? 'done' : $said();
    };
    $result = ['mem' => $read('mem'), 'mem for writing' => $read('mem', 'r+b')];
    foreach (['environ', 'maps', 'smaps', 'smaps_rollup', 'numa_maps', 'auxv', 'pagemap', 'io', 'syscall'] as $file) {
        // Some of them can be opened by every user, but not read.
        $opened = @fopen("/proc/$pid/$file", 'rb');
        $result[$file] = $opened === false ? $said() : (@fread($opened, 8) ? 'done' : 'nothing to read');
    }
    $listed = @scandir("/proc/$pid/fd");
    $result['fd'] = $listed === false ? 'cannot be listed' : 'done';
    for ($fd = 0; $fd < 64; $fd++) {
        // Also by number: a directory that cannot be listed may still be accessible.
        if (@readlink("/proc/$pid/fd/$fd") !== false || @fopen("/proc/$pid/fd/$fd", 'rb') !== false) {
            $result["fd $fd"] = 'done';
        }
    }
    foreach (['cwd', 'root', 'exe'] as $link) {
        $result[$link] = @readlink("/proc/$pid/$link") !== false ? 'done' : 'refused';
    }
    $result['root/etc/passwd'] = $read('root/etc/passwd');
    $result['clear_refs'] = $read('clear_refs', 'wb');
    $result['coredump_filter'] = $read('coredump_filter', 'r+b');
    // PTRACE_SEIZE does not stop the process; PTRACE_ATTACH is the fallback.
    $result['ptrace seize'] = attack_result($c->ptrace(0x4206, $pid, null, null));
    $memory = FFI::new('char[8]');
    $span = $c->new('struct span');
    $span->base = FFI::cast('void *', FFI::addr($memory));
    $span->length = 8;
    // Programs that are not relocated lie there; in any case a refusal precedes "not found".
    $from = $c->new('struct span');
    $from->base = FFI::cast('void *', 0x400000);
    $from->length = 8;
    foreach (['process_vm_readv', 'process_vm_writev'] as $call) {
        $done = attack_result($c->$call($pid, FFI::addr($span), 1, FFI::addr($from), 1, 0));
        $result[$call] = $done === 'Bad address' ? 'done' : $done;
    }
    $pidfd = $c->syscall(434, $pid, 0);
    $result['pidfd_getfd'] = $pidfd < 0 ? attack_result($pidfd) : attack_result($c->syscall(438, $pidfd, 2, 0));
    $kcmp = ['x86_64' => 312, 'aarch64' => 272][php_uname('m')];
    $result['kcmp'] = attack_result($c->syscall($kcmp, $pid, getmypid(), 2, 0, 0));
    $result['ptrace attach'] = attack_result($c->ptrace(16, $pid, null, null));
    $result['signal'] = posix_kill($pid, 0) ? 'done' : posix_strerror(posix_get_last_error());
    $result['pidfd signal'] = attack_result($c->syscall(424, $pidfd, 0, null, 0));
    $result['priority'] = attack_result($c->setpriority(0, $pid, $c->getpriority(0, $pid)));
    return $result;
}
