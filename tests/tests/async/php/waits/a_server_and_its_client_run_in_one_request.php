<?php
$server = stream_socket_server('tcp://127.0.0.1:0');
$task = Howdah\go(function () use ($server) {
    $c = stream_socket_accept($server, 50);
    $line = fgets($c);
    fwrite($c, "hello $line");
});
meet('a');
$c = stream_socket_client('tcp://' . stream_socket_get_name($server, false));
fwrite($c, "$m\n");
echo trim(fgets($c));
Howdah\await($task);
