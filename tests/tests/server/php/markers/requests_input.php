<?php
$in = fopen('php://input', 'r');
echo trim(fread($in, 8)), ' ', strlen(stream_get_contents($in));
rewind($in);
echo ' ', md5(stream_get_contents($in));
