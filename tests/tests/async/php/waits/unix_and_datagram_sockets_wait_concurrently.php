<?php
[$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$reader = Howdah\go(function () use ($a) {
    return fgets($a);
});
meet('a');
fwrite($b, "$m\n");
echo trim(Howdah\await($reader));
$server = stream_socket_server('udp://127.0.0.1:0', $no, $text, STREAM_SERVER_BIND);
$reader = Howdah\go(fn () => stream_socket_recvfrom($server, 100));
meet('b');
$client = stream_socket_client('udp://' . stream_socket_get_name($server, false));
fwrite($client, $m);
echo Howdah\await($reader);
