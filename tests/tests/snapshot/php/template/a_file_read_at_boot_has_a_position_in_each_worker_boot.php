<?php
$file = fopen(__DIR__ . '/lines.txt', 'r');
stream_set_read_buffer($file, 0);
stream_set_chunk_size($file, 1);
fgets($file);
