<?php
posix_mkfifo(__DIR__ . '/../fifo' . getmypid(), 0600);
$fifo = fopen(__DIR__ . '/../fifo' . getmypid(), 'r+');
