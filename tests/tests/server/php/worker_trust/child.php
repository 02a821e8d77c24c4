<?php
$found = dirname(__DIR__) . '/marks/found';
$worker = getmypid();
$child = pcntl_fork();
if ($child === 0) {
    $bad = preg_match('/howdah-lane/', file_get_contents('/proc/self/maps')) ? ['lane'] : [];
    foreach (glob('/proc/self/fd/*') as $fd) {
        $to = @readlink($fd);
        // A worker's only sockets and eventfds are those of its lane.
        if (preg_match('/^socket:|eventfd|howdah-lane/', $to)) {
            $bad[] = $to;
        }
    }
    // The request can still be read.
    if (getenv('QUERY_STRING') !== 'stop=1&x=y' || $_SERVER['REQUEST_METHOD'] !== 'GET' || $_GET['x'] !== 'y') {
        $bad[] = 'request';
    }
    file_put_contents("$found.part", json_encode($bad) . " $worker " . getmypid());
    rename("$found.part", $found);
    // Its output must not reach the next visitor's page.
    posix_kill($worker, SIGSTOP);
    for ($i = 0; $i < 2000; $i++) {
        @header("X-Left: $i");
        echo "the child speaks\n";
        flush();
        usleep(1000);
    }
    exit;
}
echo 'forked';
