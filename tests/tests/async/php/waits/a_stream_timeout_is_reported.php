<?php
$s = stream_socket_client('tcp://127.0.0.1:__PORT__');
stream_set_timeout($s, 0, 300000);
fwrite($s, "$m\n");
meet('a');
$line = fgets($s);
echo var_export($line, true), stream_get_meta_data($s)['timed_out'] ? ' timed out ' : ' other ', $m;
