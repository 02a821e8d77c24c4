<?php
meet('a');
$s = @stream_socket_client('tcp://127.0.0.1:__PORT__', $no, $text, 50);
echo var_export($s, true), " $no $text $m";
