<?php
[$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$task = Howdah\go(fn () => fgets($a));
meet('a');
stream_socket_shutdown($b, STREAM_SHUT_RDWR);
echo var_export(Howdah\await($task), true), $m;
